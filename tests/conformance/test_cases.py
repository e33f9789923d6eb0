"""Every case of the case files, carried out on the product's own code."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from tests.conformance.cases import Case
from tests.conformance.dispatcher.interpreter import run_case as run_dispatcher_case
from tests.conformance.errors import Mismatch
from tests.conformance.pipeline.backends import Backend
from tests.conformance.pipeline.interpreter import run_case
from tests.conformance.scoring import SCORED_KEYS
from tests.conformance.summary import Summary

OpenBackend = Callable[[], AbstractAsyncContextManager[Backend]]
Interpreter = Callable[[Case, OpenBackend], Awaitable[None]]

INTERPRETERS: dict[str, Interpreter] = {"pipeline": run_case, "dispatcher": run_dispatcher_case}
"""Who carries out the cases of each format; a new format is registered here."""


async def test_case(case: Case, open_backend: OpenBackend, summary: Summary) -> None:
    """What the case expects holds in every pass through it."""
    reason = summary.why_skipped(case)
    if reason is not None:
        summary.skipped(case, reason)
        pytest.skip(reason)
    deviation = summary.deviations.get(case.id)
    try:
        await INTERPRETERS[case.format](case, open_backend)
    except Exception as error:
        if deviation is not None and deviation.explains(error):
            summary.deviates(case, deviation.reason)
            pytest.xfail(deviation.reason)
        if not case.scored or not _only_scored(error):
            summary.failed(case)
            raise
        summary.scored(case, holds=False)
        return
    if deviation is not None:
        summary.failed(case)
        pytest.fail(f"{case.id} passes; take it out of deviations.toml ({deviation.reason})")
    if case.scored:
        summary.scored(case, holds=True)
    summary.passed(case)


def _only_scored(error: Exception) -> bool:
    return isinstance(error, Mismatch) and all(key in SCORED_KEYS for key, _ in error.differences)


def test_scored_groups_reach_their_share(summary: Summary) -> None:
    """Of the scored cases at least 90 % of the attacks are found and at most 5 % of the harmless ones flagged."""
    if not summary.groups:
        pytest.skip("no scored case was run")
    missed = [f"{name}: {group}" for name, group in summary.groups.items() if not group.holds]
    assert not missed, "\n".join(missed)

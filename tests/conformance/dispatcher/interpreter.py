"""Carries out one dispatcher case: checks its definition, plays what is published, compares."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

from tests.conformance.cases import Case
from tests.conformance.dispatcher.expect import check
from tests.conformance.dispatcher.publish import play
from tests.conformance.dispatcher.world import MAIN, World, opened
from tests.conformance.errors import Mismatch
from tests.conformance.pipeline.backends import Backend

from waybook.agents.checks import check as check_agent
from waybook.agents.findings import Finding

OpenBackend = Callable[[], AbstractAsyncContextManager[Backend]]


async def run_case(case: Case, open_backend: OpenBackend, *, workers: int = 1, chance: Random | None = None) -> None:
    """Raises Mismatch when anything that the case expects does not hold; Unsupported. `workers`, `chance`: see `opened`."""
    async with open_backend() as backend, opened(case, backend, workers=workers, chance=chance) as world:
        problems = await _pass(case, world)
    if problems:
        raise Mismatch(problems)


async def _pass(case: Case, world: World) -> list[tuple[str, str]]:
    findings = check_agent(world.built[MAIN].agent, ())
    problems = _definition(case.expect.get("definition"), findings)
    if problems or any(f.level == "error" for f in findings):
        return problems
    if not case.publish:
        return []
    world.define()
    world.bodies.together = frozenset(case.expect.get("overlap", ()))
    await play(world)
    return await check(world, case.expect, world.run)


def _definition(wanted: dict[str, Any] | None, findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    codes = {f.code for f in findings}
    told = "; ".join(map(str, findings))
    if wanted is None:
        wrong = [str(f) for f in findings if f.level == "error"]
        return [("definition", f"errors in a definition that has none: {wrong}")] if wrong else []
    found = "error" if any(f.level == "error" for f in findings) else "warning" if findings else "ok"
    problems = (
        [] if wanted["level"] == found else [("definition", f"level {found}, expected {wanted['level']}: {told}")]
    )
    problems += [("definition", f"{c} is missing: {told}") for c in wanted.get("codes", ()) if c not in codes]
    text = " ".join(f.message for f in findings)
    problems += [
        ("definition", f"no message mentions {w!r}: {text}") for w in wanted.get("mentions", ()) if w not in text
    ]
    problems += [("definition", f"{f.code} names no line") for f in findings if not f.line or not f.file]
    return problems

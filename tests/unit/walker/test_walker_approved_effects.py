"""Side effects that people approved."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from tests.unit.walker.office import Done, Go, Half, Office, until
from tests.unit.walker.outside import Outside
from tests.unit.walker.sending import SEEN, ended, failed_so_often

from waybook.agents import (
    Agent,
    Approvals,
    DecisionEvent,
    Effects,
    RetryPolicy,
    StepContext,
    step,
)
from waybook.agents.effects import EffectRefused


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    SEEN.clear()
    opened = Office()
    yield opened
    await opened.close()


class Approved(DecisionEvent, frozen=True, kw_only=True):
    """A person decided."""

    approval: str
    decision: str


class Asker(Agent):
    """It has a mail approved and sends it, or another one."""

    name = "gated"

    @step
    async def ask(self, go: Go, approvals: Approvals) -> Half:
        approvals.request("mail", resource="mailto:a", params={"text": "approved"}, answer=Approved)
        return Half()

    @step(retry=RetryPolicy(max_failures=5))
    async def send(self, approved: Approved, half: Half, effects: Effects, context: StepContext) -> Done:
        text = "changed" if context.attempt == 1 else "approved"
        try:
            await effects.run("mail", {"text": text}, key="reply", approval=approved.approval)
        except EffectRefused as error:
            SEEN.append(error.reason)
            raise OSError("wrote it anew") from error
        return Done()


async def test_only_what_was_approved_is_made_and_the_use_stands_with_the_intent(office: Office) -> None:
    """Other parameters are refused; a failed call goes out again under the same approval."""
    outside = Outside("failed", "done")
    await office.process("a", Asker, effects={"mail": outside})
    await office.start()
    await until(lambda: "ApprovalRequested" in office.types())
    await office.give("approve", {}, id="yes")
    for attempt in (1, 2):
        await until(partial(failed_so_often, office, attempt))
        await office.give("retry", id=f"again-{attempt}")
    await until(lambda: ended(office))
    assert SEEN == ["changed"]
    assert [c.params["text"] for c in outside.calls] == ["approved", "approved"]
    types = office.types()
    assert types[types.index("ApprovalUsed") + 1] == "OperationIntended" and types.count("ApprovalUsed") == 1

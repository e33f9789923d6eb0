"""One run whose history cannot be read stands still, says so to whoever asks, and stops no other."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.walker.office import KEY, Office, until

from waybook.engine.ports import Draft
from waybook.events.subjects import RunKey, state_subject

OTHER = RunKey("t", "gated", "other")
NEWER = b'{"version":1,"walk":1,"at":1,"actor":"a","definition":"d","events":[{"type":"NotYetKnown"}]}'


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("stored", "cause"), [(b"\x00 no commit", "JSON is malformed"), (NEWER, "unknown event type 'NotYetKnown'")]
)
async def test_who_asks_for_an_unreadable_run_hears_the_reason(office: Office, stored: bytes, cause: str) -> None:
    """A person's command is refused with the cause; the same walker goes on with every other run."""
    await office.state.append(Draft(state_subject(KEY), 0, stored, {}, "c"))
    one = await office.process("one", strict=False)
    await office.give("cancel", {}, id="asked")
    await until(lambda: "_INBOX.asked" in office.replies.answers)
    answer = office.answer("asked")
    assert (answer.ok, answer.reason) == (False, "unreadable")
    assert answer.text is not None and cause in answer.text and state_subject(KEY) in answer.text
    one.gates.open("first", "second")
    await office.start("k2", OTHER)
    await until(lambda: not office.commands.waiting)
    run = office.run(OTHER)
    assert run is not None and run.outcome == "completed"


async def test_what_no_person_asked_is_kept_for_a_program_that_can_read_the_run(office: Office) -> None:
    """A start, a timer, an answer of another agent: they come again, and are not answered as refused."""
    await office.state.append(Draft(state_subject(KEY), 0, NEWER, {}, "c"))
    one = await office.process("one", strict=False)
    one.gates.open("first", "second")
    await office.start("k1")
    await office.start("k2", OTHER)
    await until(lambda: (run := office.run(OTHER)) is not None and run.ended)
    assert "_INBOX.k1" not in office.replies.answers
    assert len(office.commands.waiting) == 1


async def test_a_message_that_follows_no_commit_is_named_as_well(office: Office) -> None:
    """It stands behind a history that is whole: whoever asks hears at which sequence it stands."""
    one = await office.process("one", strict=False)
    one.gates.open("first")
    await office.start("k1")
    await until(lambda: "second" in one.gates.entered)
    await one.stop()
    last = office.state.records[-1].sequence
    await office.state.append(Draft(state_subject(KEY), last, b"no commit", {}, "c"))
    await office.process("two", strict=False)
    await office.give("cancel", {}, id="asked")
    await until(lambda: "_INBOX.asked" in office.replies.answers)
    answer = office.answer("asked")
    assert (answer.ok, answer.reason) == (False, "unreadable")
    assert answer.text is not None and f"the commit at {last + 1} follows ''" in answer.text

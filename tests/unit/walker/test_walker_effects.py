"""Side effects in a walker: one intent, one call, one outcome, whatever becomes of the body."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest
from tests.unit.walker.office import LEASE_MS, Go, Half, Office, until
from tests.unit.walker.outside import Outside
from tests.unit.walker.sending import (
    SEEN,
    Sender,
    begin,
    ended,
    failed_so_often,
    held,
    is_resolved,
    operations,
    outcome,
    send,
)

from waybook.agents import (
    Agent,
    DefinitionError,
    Effects,
    OperationFailed,
    StepContext,
    step,
)
from waybook.agents.definition import define
from waybook.agents.effects import EffectRefused
from waybook.engine.aggregates.keys import policy_key
from waybook.engine.hold import hold, why
from waybook.events.engine import OperationDisputed, OperationIntended, OperationSettled, StepFailed
from waybook.events.subjects import RunKey
from waybook.services.walker.effects import MOMENT_MS, PATIENCE_MS


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    SEEN.clear()
    opened = Office()
    yield opened
    await opened.close()


async def test_the_intent_is_stored_before_the_call_and_the_outcome_before_the_result(office: Office) -> None:
    outside = Outside("held")
    await begin(office, outside)
    await office.start()
    await until(lambda: bool(outside.calls))
    assert [type(e) for e in office.events()][-1] is OperationIntended
    outside.go_on.set()
    await until(lambda: ended(office))
    assert [t for t in office.types() if t.startswith(("Operation", "StepC"))] == [
        "OperationIntended", "OperationSettled", "StepCompleted",
    ]  # fmt: skip
    assert SEEN[0].evidence == {"id": 1} and not SEEN[0].changed


async def test_a_step_that_runs_again_gets_the_recorded_outcome(office: Office) -> None:
    """Two alike are two, those of the first attempt are not made again, and one with a key is one for the step."""

    async def body(effects: Effects, context: StepContext) -> None:
        await effects.run("mail", {"text": "reminder"})
        await asyncio.gather(effects.run("mail", {"text": "reminder"}), effects.run("mail", {"text": "x"}, key="own"))
        SEEN.append(await effects.run("mail", {"text": "y"}, key="own"))
        if context.attempt < 3:
            raise RuntimeError("the model timed out")

    outside = Outside()
    await begin(office, outside, body)
    await office.start()
    for attempt in (1, 2):
        await until(partial(failed_so_often, office, attempt))
        await office.give("retry", id=f"again-{attempt}")
    await until(lambda: ended(office))
    assert sorted(c.params["text"] for c in outside.made) == ["reminder", "reminder", "x"]
    assert len({c.idempotency_key for c in outside.made}) == 3
    assert [receipt.changed for receipt in SEEN] == [True, True, True]
    assert "effect_parameters_changed" in str(office.notes.traced)


async def test_after_a_crash_the_old_parameters_are_asked_for_and_found(office: Office) -> None:
    """The second attempt writes another text; the mail that left is the one that counts."""
    outside = Outside("held")
    first = await begin(office, outside)
    await office.start()
    await until(lambda: bool(outside.calls))
    outside.made.append(outside.calls[0])  # it left, and the process dies before it hears so
    await first.kill()
    await begin(office, outside, name="b")
    await office.lapse()
    await until(lambda: ended(office))
    assert [c.params["text"] for c in outside.made] == ["text 1"]
    assert (SEEN[0].changed, SEEN[0].evidence, operations(office)[0].by) == (True, {"id": "found"}, "find")


async def test_absent_counts_only_after_the_last_moment_of_a_call(office: Office) -> None:
    """The deadline of the call, and then what the other side may still work off."""
    outside = Outside("held", "done", call_ms=100_000, settle_ms=500_000)
    first = await begin(office, outside)
    await office.start()
    await until(lambda: bool(outside.calls))
    await first.kill()
    await begin(office, outside, name="b")
    await office.lapse()
    await until(lambda: held(office))
    run = office.run()
    assert run is not None and len(outside.calls) == 1
    ((timer, armed),) = run.timers.items()
    assert armed.due == operations(office)[0].intent.deadline + 500_000
    office.clock.advance(armed.due - office.clock.now())
    await office.give("timer", {"timer": timer}, id="fired", issuer="relay")
    await until(lambda: ended(office))
    assert [c.params["text"] for c in outside.made] == ["text 3"]
    assert [e.outcome for e in office.events() if isinstance(e, OperationSettled)] == ["unknown", "absent", "succeeded"]


async def test_a_suspect_that_only_waits_for_the_other_side_does_not_keep_its_process_waiting(office: Office) -> None:
    """It is alone in its process, so it gives its turn away at once, and comes back alone when the time is over."""
    outside = Outside("held", "done", settle_ms=5 * LEASE_MS // 4 - 30_000 + 4_000)
    first = await begin(office, outside)
    await office.start()
    await until(lambda: bool(outside.calls))
    await first.kill()
    await begin(office, outside, name="b")
    await office.lapse()
    left_ms = operations(office)[0].intent.deadline + outside.settle_ms - office.clock.now()
    assert MOMENT_MS < left_ms <= PATIENCE_MS, "so long a body waits when nobody waits for it"
    other = RunKey("t", "gated", "other")
    await office.start("k2", other)
    await until(lambda: (run := office.run(other)) is not None and run.ended, within_s=2)
    await until(lambda: held(office), within_s=2)
    run = office.run()
    assert run is not None and len(outside.calls) == 2
    ((timer, armed),) = run.timers.items()
    office.clock.advance(armed.due - office.clock.now())
    await office.give("timer", {"timer": timer}, id="fired", issuer="relay")
    await until(lambda: ended(office))
    assert len(outside.calls) == 3 and run.failures == {"first": 1}


async def test_a_body_that_waits_for_the_other_side_gives_way_when_a_suspect_comes(office: Office) -> None:
    """It was nobody's burden before, and would keep the suspect waiting to its end."""
    outside = Outside("held", "unsure", "done", call_ms=1_000, settle_ms=PATIENCE_MS - 2_000)
    dying = await begin(office, outside)
    lost = RunKey("t", "gated", "lost")
    await office.start("k2", lost)
    await until(lambda: bool(outside.calls))
    await dying.kill()
    await begin(office, outside, name="b")
    await office.start()
    await until(lambda: outside.asked == 1)
    assert not held(office)
    await office.lapse()
    await until(lambda: held(office), within_s=2)
    await until(lambda: (run := office.run(lost)) is not None and run.ended, within_s=2)
    assert len(outside.calls) == 3 and not ended(office)


@pytest.mark.parametrize(("word", "calls"), [("succeeded", 1), ("absent", 2)])
async def test_unknown_is_held_for_a_person_whose_word_lets_the_run_go_on(
    office: Office, word: str, calls: int
) -> None:
    """It is no failure, nothing is sent again before, and `why` names the operation."""
    outside = Outside("lost", "done", knows=None)
    await begin(office, outside)
    await office.start()
    await until(lambda: held(office))
    run = office.run()
    assert run is not None and run.failures == {} and not office.commands.waiting
    key = operations(office)[0].intent.key
    assert key in why(define(Sender).engine, run).next_move and not run.timers
    await office.give("settle", {"operation": "nothing", "outcome": word}, id="s0")
    await until(lambda: "_INBOX.s0" in office.replies.answers)
    assert office.answer("s0").reason == "unknown_operation"
    await office.give(
        "settle", {"operation": key, "outcome": word, "evidence": {"reason": "it is in the box"}}, id="s1"
    )
    await until(lambda: ended(office))
    assert len(outside.calls) == calls
    await office.give("settle", {"operation": key, "outcome": word}, id="s2")
    await until(lambda: "_INBOX.s2" in office.replies.answers)
    assert office.answer("s2").reason == "already_settled"


async def test_a_held_run_resolves_itself_when_the_other_side_answers_later(office: Office) -> None:
    outside = Outside("lost", knows=False)
    asked = outside.find

    async def silent(call: Any) -> Any:
        raise ConnectionError("down")

    outside.find = silent  # type: ignore[method-assign]
    await begin(office, outside)
    await office.start()
    await until(lambda: held(office))
    for number in range(3):
        run = office.run()
        assert run is not None
        ((timer, armed),) = run.timers.items()
        office.clock.advance(max(0, armed.due - office.clock.now()))
        await office.give("timer", {"timer": timer}, id=f"fired-{number}", issuer="relay")
        if number == 2:
            outside.find = asked  # type: ignore[method-assign]
        await until(partial(is_resolved, office, timer))
    await until(lambda: ended(office))
    assert len(outside.made) == 1 and operations(office)[0].by == "find"
    assert not office.run().timers  # type: ignore[union-attr]


async def test_what_surely_failed_is_tried_again_and_what_cannot_help_is_not(office: Office) -> None:
    outside = Outside("failed", "rejected")
    await begin(office, outside)
    await office.start()
    await until(lambda: "StepFailed" in office.types())
    await office.give("retry", id="again")
    await until(lambda: office.types().count("StepFailed") == 2)
    failures = [e for e in office.events() if isinstance(e, StepFailed)]
    assert [f.exhausted for f in failures] == [False, True]
    assert len({c.idempotency_key for c in outside.calls}) == 1


async def test_an_outcome_is_stored_although_the_run_was_cancelled_meanwhile(office: Office) -> None:
    outside = Outside("held")
    await begin(office, outside)
    await office.start()
    await until(lambda: bool(outside.calls))
    await office.give("cancel", {"reason": "enough"}, id="stop")
    await until(lambda: ended(office))
    assert outcome(office) == "unknown" and held(office)
    outside.go_on.set()
    await until(lambda: outcome(office) == "succeeded")
    assert hold(define(Sender).engine, office.run()).kind == "none"  # type: ignore[arg-type]


async def test_a_body_that_waits_no_longer_before_the_call_makes_none(office: Office) -> None:
    """And one that goes away during the call leaves it to its end."""

    async def body(effects: Effects, context: StepContext) -> None:
        early = asyncio.create_task(effects.run("mail", {"text": "early"}, key="early"))
        await asyncio.sleep(0)
        early.cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await effects.run("mail", {"text": "late"}, key="late")

    outside = Outside("held")
    await begin(office, outside, body)
    await office.start()
    await until(lambda: ended(office))
    outside.go_on.set()
    await until(lambda: outcome(office) == "succeeded")
    assert [c.params["text"] for c in outside.calls] == ["late"]
    assert [o.outcome for o in operations(office) if o.intent.key.startswith("first/mail/early")] in ([], ["failed"])


async def test_a_graceful_stop_waits_for_the_call_and_the_next_process_does_not_repeat_it(office: Office) -> None:
    outside = Outside("held")
    first = await begin(office, outside)
    await office.start()
    await until(lambda: bool(outside.calls))
    stopping = asyncio.create_task(first.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done()
    outside.go_on.set()
    await stopping
    assert outcome(office) == "succeeded"
    await begin(office, outside, name="b")
    await until(lambda: ended(office))
    assert len(outside.calls) == 1


async def test_a_superseded_body_begins_no_side_effect(office: Office) -> None:
    """The first process is slow, its command comes to another one, and then it goes on."""
    may_go_on = asyncio.Event()
    raised: list[Exception] = []

    async def body(effects: Effects, context: StepContext) -> None:
        if context.attempt == 1:
            try:
                await may_go_on.wait()
            except asyncio.CancelledError:
                try:
                    await effects.run("mail", {"text": "too late"})
                except Exception as error:  # noqa: BLE001 - looked at below
                    raised.append(error)
                raise
        await send(effects, context)

    outside = Outside()
    first = await begin(office, outside, body, slots=1)  # so that the command comes to the other process
    await office.start()
    await until(lambda: "StepBegan" in office.types())
    first.heartbeat.lose()
    await begin(office, outside, body, name="b")
    await office.lapse()
    await until(lambda: ended(office))
    await until(lambda: len(raised) == 1)
    assert type(raised[0]).__name__ in ("LeaseLost", "Cancelled")
    assert [c.params["text"] for c in outside.made] == ["text 2"]


async def test_a_second_different_outcome_is_kept_for_a_person(office: Office) -> None:
    outside = Outside()
    await begin(office, outside)
    await office.start()
    await until(lambda: ended(office))
    operation = operations(office)[0]
    late = {"operation": operation.intent.key, "outcome": "absent", "by": "find"}
    await office.give("settle", late, id="late", issuer="relay")
    await until(lambda: any(isinstance(e, OperationDisputed) for e in office.events()))
    assert hold(define(Sender).engine, office.run()).reason == "disputed"  # type: ignore[arg-type]
    await office.give("settle", {"operation": operation.intent.key, "outcome": "succeeded"}, id="person")
    await until(lambda: not operations(office)[0].disputed)
    assert (outcome(office), operations(office)[0].by) == ("succeeded", "person")


async def test_large_parameters_lie_in_the_object_bucket(office: Office) -> None:
    async def body(effects: Effects, context: StepContext) -> None:
        await effects.run("mail", {"text": "x" * 100_000})

    outside = Outside()
    await begin(office, outside, body)
    await office.start()
    await until(lambda: ended(office))
    assert len(outside.made[0].params["text"]) == 100_000
    assert len(msgspec.json.encode(operations(office)[0].intent.params)) < 300


async def test_what_cannot_be_an_effect_is_refused_in_the_body(office: Office) -> None:
    raised: list[str] = []

    async def body(effects: Effects, context: StepContext) -> None:
        for name, params, key in (
            ("fax", {}, None), ("mail", {"x": object()}, None), ("undo:mail", {}, None), ("mail", {}, "\n"),
        ):  # fmt: skip
            try:
                await effects.run(name, params, key=key)
            except Exception as error:  # noqa: BLE001 - looked at below
                raised.append(type(error).__name__)
        with pytest.raises(EffectRefused, match="no approval"):
            await effects.run("mail", {}, approval="1.1")

    await begin(office, Outside(), body)
    await office.start()
    await until(lambda: ended(office))
    assert raised == ["UnknownEffect", "InvalidInput", "InvalidInput", "InvalidInput"]
    assert operations(office) == []


async def test_compensation_undoes_the_latest_first_and_stops_at_the_unknown(office: Office) -> None:
    async def body(effects: Effects, context: StepContext) -> None:
        for key in ("book", "reserve", "charge"):
            await effects.run("mail", {"what": key}, key=key)
        SEEN.append(await effects.compensate())

    outside = Outside("done", "done", "done", "done", "unsure", "done", "done", knows=None)
    await begin(office, outside, body)
    await office.start()
    await until(lambda: held(office))
    undoings = [o for o in operations(office) if o.intent.name == "undo:mail"]
    assert [o.intent.params["what"] for o in undoings] == ["charge", "reserve"]
    assert [o.outcome for o in undoings] == ["succeeded", "unknown"]
    await office.give("settle", {"operation": undoings[1].intent.key, "outcome": "absent"}, id="s")
    await until(lambda: ended(office))
    assert [k.split("/")[2] for k in outside.undone] == ["charge", "reserve", "book"]
    assert len(SEEN[0]) == 3 and len(outside.made) == 3


async def test_a_deliberate_second_effect_is_a_persons_word(office: Office) -> None:
    """A generation is added to the key; without it the step that runs again makes nothing."""

    async def body(effects: Effects, context: StepContext) -> None:
        await effects.run("mail", {"text": str(context.attempt)}, key="reply")
        if context.attempt < 3:
            raise OSError("broken")

    outside = Outside()
    await begin(office, outside, body)
    await office.start()
    await until(lambda: "StepFailed" in office.types())
    await office.give("retry", id="r1")
    await until(partial(failed_so_often, office, 2))
    assert len(outside.made) == 1
    for name in ("renew", "again"):
        await office.give("renew", {"operation": "first/mail/reply/1", "reason": "they lost it"}, id=name)
        await until(lambda inbox=f"_INBOX.{name}": inbox in office.replies.answers)  # type: ignore[misc]
    assert (office.answer("renew").already, office.answer("again").already) == (False, True)
    await office.give("retry", id="r2")
    await until(lambda: ended(office))
    assert [c.params["text"] for c in outside.made] == ["1", "3"]
    assert [o.intent.generation for o in operations(office)] == [1, 2]
    assert len({c.idempotency_key for c in outside.made}) == 2


async def test_a_person_has_everything_undone_the_latest_first(office: Office) -> None:
    """No body runs for it; it stops at what is unknown, and goes on with the person's word."""

    async def body(effects: Effects, context: StepContext) -> None:
        for key in ("book", "reserve", "charge"):
            await effects.run("mail", {"what": key}, key=key)
        raise OSError("no stock")

    outside = Outside("done", "done", "done", "done", "lost", "done", knows=None)
    await begin(office, outside, body)
    await office.start()
    await until(lambda: "StepFailed" in office.types())
    await office.give("compensate", {}, id="undo")
    await until(lambda: held(office))
    assert [k.split("/")[2] for k in outside.undone] == ["charge", "reserve"]
    unknown = operations(office)[-1]
    assert (unknown.intent.params["what"], unknown.outcome) == ("reserve", "unknown")
    await office.give("compensate", {}, id="again")
    await until(lambda: "_INBOX.again" in office.replies.answers)
    assert office.answer("again").reason == "unresolved"
    await office.give("settle", {"operation": unknown.intent.key, "outcome": "succeeded"}, id="s")
    await until(lambda: outside.undone[-1:] == ["undo:first/mail/book/1"])
    await until(lambda: [o.outcome for o in operations(office)] == ["succeeded"] * 6)
    run = office.run()
    assert run is not None and run.state == "failed" and len(outside.made) == 3
    assert {t.timer_class for t in run.timers.values()} == {"retry"}
    await office.give("compensate", {}, id="more")
    await until(lambda: "_INBOX.more" in office.replies.answers)
    assert office.answer("more").already


async def test_a_failure_says_what_the_other_side_said(office: Office) -> None:
    async def body(effects: Effects, context: StepContext) -> None:
        try:
            await effects.run("mail", {})
        except OperationFailed as error:
            SEEN.append((str(error), error.evidence["text"]))

    await begin(office, Outside("failed"), body)
    await office.start()
    await until(lambda: ended(office))
    assert SEEN == [("mail did not happen: no", "no")]


def test_a_step_that_is_no_coroutine_cannot_ask_for_effects() -> None:
    class Plain(Agent):
        """A plain function cannot await."""

        @step
        def first(self, go: Go, effects: Effects) -> Half:
            return Half()

    with pytest.raises(DefinitionError, match="async def"):
        define(Plain)


async def test_the_kill_switch_stops_every_side_effect_that_has_not_begun(office: Office) -> None:
    async def body(effects: Effects, context: StepContext) -> None:
        with pytest.raises(EffectRefused) as refused:
            await effects.run("mail", {})
        SEEN.append(refused.value.reason)

    outside = Outside()
    await begin(office, outside, body)
    await office.give("kill-switch", {"on": True, "reason": "stop"}, id="off", key=policy_key("t"))
    await until(lambda: "_INBOX.off" in office.replies.answers)
    assert office.answer("off").ok, office.answer("off")
    await office.start()
    await until(lambda: ended(office))
    assert SEEN == ["kill_switch"] and outside.calls == []

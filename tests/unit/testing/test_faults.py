"""Faults stand where they are armed, and nowhere else."""

import pytest

from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.engine.ports import NEW_ANY, Draft, Outgoing, PortUnavailable
from waybook.events.headers import COMMIT
from waybook.testing.faults import (
    Boundary,
    Faults,
    FaultyCommandQueue,
    FaultyNotes,
    FaultyObjects,
    FaultyReplies,
    FaultyStateLog,
    failing,
)

START = "cmd.new.any.cli.t.inbox.r1.start"


class Died(BaseException):
    """Stands for the death of the process."""


def draft(expected: int, run: str = "r1") -> Draft:
    return Draft(f"state.g1.00.t.inbox.{run}", expected, b"{}", {COMMIT: f"c{expected}"}, f"c{expected}")


def dying() -> None:
    raise Died


async def test_before_an_append_nothing_is_stored() -> None:
    faults, inner = Faults(), MemoryStateLog()
    faults.arm("append.before", dying)
    with pytest.raises(Died):
        await FaultyStateLog(inner, faults).append(draft(0))
    assert inner.records == []


@pytest.mark.parametrize("boundary", ["append.sent", "append.after"])
async def test_after_an_append_it_is_stored_and_unseen(boundary: Boundary) -> None:
    faults, inner = Faults(), MemoryStateLog()
    faults.arm(boundary, dying)
    with pytest.raises(Died):
        await FaultyStateLog(inner, faults).append(draft(0))
    assert len(inner.records) == 1


async def test_the_nth_of_those_that_match_is_hit_and_the_others_pass() -> None:
    faults, inner = Faults(), MemoryStateLog()
    log = FaultyStateLog(inner, faults)
    faults.arm("append.before", failing(PortUnavailable("now")), nth=2, where="*.r2", times=2)
    assert await log.append(draft(0, "r1")) == 1
    assert await log.append(draft(0, "r2")) == 2
    for _ in range(2):
        with pytest.raises(PortUnavailable, match="now"):
            await log.append(draft(2, "r2"))
    assert await log.append(draft(2, "r2")) == 3
    assert await log.append(draft(1, "r1")) == 4


async def test_every_verb_of_a_delivery_has_its_boundaries() -> None:
    faults, inner = Faults(), MemoryCommandQueue()
    queue = FaultyCommandQueue(inner, faults)
    await queue.ensure_consumers([NEW_ANY])
    await queue.publish(START, b"{}", command="c1")
    await queue.publish_many([Outgoing(START, b"{}", "c2")])
    one, two = await queue.pull(NEW_ANY.name, 2, 1.0)
    assert (one.subject, one.payload, one.headers["Nats-Msg-Id"]) == (START, b"{}", "c1")
    await one.nak(60.0)
    await one.term("done")
    await two.in_progress()
    assert await queue.holds(two.claim.sequence)
    await two.ack()
    assert not await queue.holds(two.claim.sequence)
    assert [boundary for boundary, _ in faults.passed] == [
        *("publish.before", "publish.after") * 2,
        *("pull.after",) * 2,
        *("nak.before", "nak.after", "term.before", "term.after", "ack.before", "ack.after"),
    ]


async def test_notes_replies_objects_and_reads_have_their_boundaries() -> None:
    faults = Faults()
    notes, replies, objects = MemoryNotes(), MemoryReplies(), MemoryObjects()
    await FaultyNotes(notes, faults).audit("t", "r", b"a")
    await FaultyNotes(notes, faults).trace("t", "late", b"l")
    await FaultyNotes(notes, faults).bury(START, b"d", {})
    await FaultyReplies(replies, faults).answer("_INBOX.x", b"y")
    await FaultyObjects(objects, faults).put("o", b"data")
    assert await FaultyObjects(objects, faults).get("o") == b"data"
    log = FaultyStateLog(MemoryStateLog(), faults)
    assert [r async for r in log.history("state.g1.00.t.inbox.r1")] == []
    assert await log.tail("state.g1.00.t.inbox.r1") is None
    assert [boundary for boundary, _ in faults.passed] == [
        "audit.before", "audit.after", "trace.before", "bury.before", "bury.after", "answer.before", "answer.after",
        "put.before", "put.after", "get.before", "history.before", "tail.before",
    ]  # fmt: skip
    assert (notes.dead[0].subject, replies.answers) == (f"dead.{START}", {"_INBOX.x": [b"y"]})


async def test_what_is_disarmed_does_nothing() -> None:
    faults = Faults()
    faults.arm("append.before", dying)
    faults.disarm()
    assert await FaultyStateLog(MemoryStateLog(), faults).append(draft(0)) == 1


def test_a_boundary_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no boundary .* append\.before"):
        Faults().arm("append.sometime", dying)  # type: ignore[arg-type]

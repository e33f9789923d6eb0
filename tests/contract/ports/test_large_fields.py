"""Large fields: what every StateLog keeps aside, and gives back."""

import msgspec
import pytest
from tests.contract.ports.adapters_under_test import Ports

from waybook.engine.ports import CommitTooLarge, Draft
from waybook.events.codec import Codec, commit_headers, commit_id
from waybook.events.commit import Commit
from waybook.events.engine import EventPublished
from waybook.events.subjects import RunKey, state_subject

SUBJECT = state_subject(RunKey("t", "agent", "run"))


def commit(**fields: object) -> tuple[Commit, bytes]:
    event = EventPublished(event="Found", schema=1, payload=msgspec.Raw(msgspec.json.encode(fields)))
    one = Commit(version=1, walk=1, at=1, actor="a", definition="d", events=(event,))
    return one, Codec().encode(one)


async def append(ports: Ports, one: Commit, payload: bytes) -> None:
    identity = commit_id(SUBJECT, 0, payload)
    await ports.log.append(Draft(SUBJECT, 0, payload, commit_headers(one, commit_id=identity), identity))


async def test_a_field_larger_than_a_commit_is_read_back_where_it_was(ports: Ports) -> None:
    """The stored message is small, the history is whole."""
    one, whole = commit(text="x" * 600_000, n=1)
    payload = await ports.log.fitting(SUBJECT, whole)
    assert len(payload) < 1_000
    await append(ports, one, payload)
    assert [r.payload async for r in ports.log.history(SUBJECT)] == [whole]
    tail = await ports.log.tail(SUBJECT)
    assert tail is not None and tail.payload == payload


async def test_an_event_that_no_command_could_carry_is_refused_with_its_field(ports: Ports) -> None:
    _, whole = commit(text="x" * 800_000)
    with pytest.raises(CommitTooLarge, match=r"largest field is 'text' \(800002 bytes\); put that into"):
        await ports.log.fitting(SUBJECT, whole)

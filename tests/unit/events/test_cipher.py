"""Field encryption's place: what is marked personal is stored sealed, and comes back open."""

from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.events.strategies import COMMITS, TEXT

from waybook.events import engine as e
from waybook.events.codec import Codec, FieldPlace
from waybook.events.commit import Commit
from waybook.events.registry import Registry, UnreadableEvent
from waybook.events.typed import Event, Personal

SUBJECT = "state.g1.00.acme.inbox.r1"


class Toy:
    """No encryption at all: it turns the bytes round and remembers where they stood."""

    def encrypt(self, place: FieldPlace, value: bytes) -> str:
        return f"{place.event}.{place.field}:{value[::-1].hex()}"

    def decrypt(self, place: FieldPlace, text: str) -> bytes:
        where, _, value = text.rpartition(":")
        if where != f"{place.event}.{place.field}" or place.subject != SUBJECT:
            raise ValueError(f"made for {where}, found at {place}")
        return bytes.fromhex(value)[::-1]


class Letter(Event, frozen=True, kw_only=True):
    sender: Annotated[str, Personal]
    answer_to: Annotated[str, Personal] | None = None
    pages: int


def registry() -> Registry:
    known = Registry(Letter)
    known.mark_personal("reply", "to")
    return known


def letter_commit() -> Commit:
    return Commit(
        version=1,
        walk=1,
        at=1,
        actor="a",
        definition="d",
        events=(
            registry().publish(Letter(sender="ann@example.org", answer_to="bob@example.org", pages=2)),
            e.Transitioned(
                row="R", from_state="a", to_state="b", on="Letter", fields={"reply": "dear ann", "score": 1}
            ),
            e.FieldsSet(row="R", fields={"reply": {"text": "dear ann"}}),
            e.OperationIntended(
                key="k", name="send", action="1.1", digest="x", params={"to": ["ann"], "n": 1}, deadline=1
            ),
        ),
    )


def test_personal_fields_of_payloads_transitions_and_operations_are_stored_sealed() -> None:
    codec = Codec(registry(), Toy())
    payload = codec.encode(letter_commit(), SUBJECT)
    for secret in (b"ann", b"bob", b"dear"):
        assert secret not in payload
    for open_value in (b'"pages":2', b'"score":1', b'"n":1'):
        assert open_value in payload
    assert payload.count(b'"@sealed"') == 5
    assert codec.decode(payload, subject=SUBJECT) == letter_commit()


def test_without_the_cipher_a_reader_sees_that_fields_are_sealed() -> None:
    read = Codec(registry()).decode(Codec(registry(), Toy()).encode(letter_commit(), SUBJECT))
    letter, moved = read.events[0], read.events[1]
    assert isinstance(moved, e.Transitioned)
    assert list(moved.fields["reply"]) == ["@sealed"]
    assert isinstance(letter, e.EventPublished)
    with pytest.raises(UnreadableEvent, match="Letter"):
        registry().read(letter)


def test_what_was_stored_before_there_was_a_cipher_is_still_read() -> None:
    payload = Codec(registry()).encode(letter_commit())
    assert Codec(registry(), Toy()).decode(payload, subject=SUBJECT) == letter_commit()


def test_a_value_that_only_looks_sealed_comes_back_as_it_was() -> None:
    """Nobody outside can plant a ciphertext that the decoder would choke on."""
    payload = msgspec.Raw(b'{"sender":{"@sealed":"x"},"pages":{"@sealed":"planted"},"more":{"@sealed":1}}')
    stored = letter_commit()
    planted = (
        e.EventPublished(event="Letter", schema=1, payload=payload),
        e.FieldsSet(row="R", fields={"other": {"@sealed": "planted"}}),
    )
    stored = msgspec.structs.replace(stored, events=planted)
    codec = Codec(registry(), Toy())
    assert codec.decode(codec.encode(stored, SUBJECT), subject=SUBJECT) == stored


@settings(max_examples=40)
@given(COMMITS, st.sets(TEXT))
def test_sealing_changes_no_commit(stored: Commit, marked: set[str]) -> None:
    known = Registry()
    fields: set[Any] = {f for event in stored.events for f in getattr(event, "fields", {})}
    known.mark_personal(*marked, *fields)
    codec = Codec(known, Toy())
    assert codec.decode(codec.encode(stored, SUBJECT), subject=SUBJECT) == stored

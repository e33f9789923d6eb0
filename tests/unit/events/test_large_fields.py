"""Fields too large for a commit stand in the object bucket, and come back byte for byte."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybook.events.codec import Codec
from waybook.events.commit import Commit
from waybook.events.engine import ChildRequested, EngineEvent, EventPublished, RunTold, StepCompleted
from waybook.events.large_fields import (
    MARK,
    MOST_WHOLE,
    TARGET,
    FieldReference,
    LostField,
    folder,
    join,
    needs_split,
    references,
    split,
    too_large,
)
from waybook.events.subjects import RunKey

KEY = RunKey("t", "agent", "run")
OTHER = RunKey("t", "agent", "other")


class Long(NamedTuple):
    """A text of so many bytes, short to tell."""

    size: int


def commit(*payloads: Mapping[str, object]) -> bytes:
    """A commit that publishes events with these fields."""
    long = [{k: "é\n" * (v.size // 4) if isinstance(v, Long) else v for k, v in p.items()} for p in payloads]
    published = tuple(
        EventPublished(event="Found", schema=1, payload=msgspec.Raw(msgspec.json.encode(p))) for p in long
    )
    events: tuple[EngineEvent, ...] = (
        *published,
        StepCompleted(action="1.0", outputs=tuple(range(len(published))), duration_ms=1),
    )
    return Codec().encode(Commit(version=1, walk=1, at=1, actor="a", definition="d", events=events))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("@object"), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.dictionaries(st.text(max_size=8), values | st.builds(Long, st.integers(1_100, 300_000)), max_size=4)


@given(st.lists(fields, min_size=1, max_size=4))
def test_what_was_put_aside_comes_back_byte_for_byte(payloads: list[dict[str, object]]) -> None:
    """Whatever the fields hold, references of other spellings among them."""
    whole = commit(*payloads)
    stored, objects = split(whole, KEY)
    assert join(stored, KEY, objects) == whole
    assert {r.name for r in references(stored)} == set(objects)
    assert needs_split(whole) or not objects


@given(st.lists(fields, min_size=1, max_size=6))
def test_what_is_stored_fits_whenever_its_large_fields_were_in_the_way(payloads: list[dict[str, object]]) -> None:
    """A commit over 240 KiB is at most 200 KiB afterwards, but for fields under 1 KiB."""
    stored, _ = split(commit(*payloads), KEY)
    assert len(stored) <= MOST_WHOLE
    if len(commit(*payloads)) > MOST_WHOLE:
        assert len(stored) <= TARGET


def test_a_commit_that_fits_stays_whole() -> None:
    """One message and nothing else to read; a field of 200 KiB is no reason."""
    whole = commit({"text": "x" * 200 * 1024})
    assert split(whole, KEY) == (whole, {})
    assert not needs_split(whole)


def test_the_largest_fields_go_first_and_no_more_than_needed() -> None:
    whole = commit({"a": "a" * 150_000, "b": "b" * 90_000, "c": "c" * 20_000, "d": 1})
    _, objects = split(whole, KEY)
    assert [len(value) for value in objects.values()] == [150_002]


def test_what_looks_like_a_reference_is_put_aside_whatever_its_size() -> None:
    """So a reference in the log was made here, and nobody's text names another run's object."""
    forged = {"@object": f"{folder(OTHER)}/x", "sha256": "x", "bytes": 1}
    whole = commit({"text": forged})
    assert needs_split(whole)
    stored, objects = split(whole, KEY)
    assert list(objects.values()) == [msgspec.json.encode(forged)]
    assert join(stored, KEY, objects) == whole


def test_another_spelling_of_a_reference_is_a_field_like_any_other() -> None:
    """Only the bytes that this program writes are one."""
    spelled = b'{"\\u0040object": "fields/t/agent/other/x", "sha256": "x", "bytes": 1}'
    payload = msgspec.Raw(b'{"text": %b, "long": "%b"}' % (spelled, b"x" * 300_000))
    event = EventPublished(event="Found", schema=1, payload=payload)
    whole = Codec().encode(Commit(version=1, walk=1, at=1, actor="a", definition="d", events=(event,)))
    stored, objects = split(whole, KEY)
    assert [r.bytes for r in references(stored)] == [300_002]
    assert b'"fields/t/agent/other/x"' in join(stored, KEY, objects)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: {}, "which is gone"),
        (lambda found: {name: data + b" " for name, data in found.items()}, "does not hold what was stored"),
    ],
)
def test_a_field_that_is_gone_or_changed_is_named(change, told: str) -> None:  # type: ignore[no-untyped-def]
    stored, objects = split(commit({"n": 1}, {"text": "x" * 300_000}), KEY)
    with pytest.raises(LostField, match=rf"field 'text' of event 1 .* {told}"):
        join(stored, KEY, change(objects))


def test_a_reference_to_another_runs_object_is_refused() -> None:
    """Even when the bytes are there and the hash is right."""
    stored, objects = split(commit({"text": "x" * 300_000}), OTHER)
    with pytest.raises(LostField, match="which is not this run's"):
        join(stored, KEY, objects)


def test_what_goes_to_other_runs_is_put_aside_as_well() -> None:
    """A request's start and what a run tells its caller hold fields like those of an event."""
    body = msgspec.Raw(msgspec.json.encode({"text": "x" * 300_000}))
    start = msgspec.Raw(msgspec.json.encode({"event": "Began", "schema": 1, "body": body, "content": "c"}))
    asked = ChildRequested(request="1.0", agent="other", run="c1", start=start)
    told = RunTold(
        agent="caller", run="r", event="Ended", schema=1, body=msgspec.Raw(b'{"n":1,"text":"%b"}' % (b"y" * 250_000))
    )
    whole = Codec().encode(Commit(version=1, walk=1, at=1, actor="a", definition="d", events=(asked, told)))
    stored, objects = split(whole, KEY)
    assert len(stored) < 2_000 and [len(value) for value in objects.values()] == [300_002, 250_002]
    assert join(stored, KEY, objects) == whole


def test_an_event_over_768_kib_is_named_with_its_largest_field() -> None:
    assert too_large(commit({"n": 1}, {"a": "x" * 300_000, "b": "x" * 500_000})) == (1, "b", 500_002)
    assert too_large(commit({"a": "x" * 700_000}, {"a": "x" * 700_000})) is None


def test_a_reference_says_where_how_large_and_which_hash() -> None:
    """Services in other languages read it: an object with these three members."""
    stored, objects = split(commit({"text": "x" * 300_000}), KEY)
    [name] = objects
    digest = name.rpartition("/")[2]
    assert f'{{"@object":"{name}","sha256":"{digest}","bytes":300002}}'.encode() in stored
    assert msgspec.json.encode(FieldReference(name, digest, 1)).startswith(MARK)

"""Commits as bytes: what goes in comes out, older shapes are brought up to date, the rest is named."""

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.events.strategies import COMMITS, JSON_VALUES, TEXT, structs

from waybook.events import engine as e
from waybook.events.codec import (
    BrokenCommit,
    Codec,
    CommitTooNew,
    UnknownEventType,
    UnstorableCommit,
    commit_headers,
    commit_id,
)
from waybook.events.commit import Commit
from waybook.events.engine import ENGINE_EVENTS, EngineEvent
from waybook.events.errors import InvalidInput
from waybook.events.headers import SCHEMAS, TYPES, schemas_of, types_of
from waybook.events.registry import MissingUpcaster, Registry


def commit(*events: EngineEvent, **changes: Any) -> Commit:
    given_values: dict[str, Any] = {
        "version": 3,
        "walk": 1,
        "at": 1_700_000_000_000,
        "actor": "walker",
        "definition": "d" * 26,
    }
    return Commit(**(given_values | changes), events=events)


@settings(max_examples=15)
@pytest.mark.parametrize("name", sorted(ENGINE_EVENTS))
@given(data=st.data())
def test_every_event_type_comes_back_as_it_went_in(name: str, data: st.DataObject) -> None:
    event = data.draw(structs(ENGINE_EVENTS[name]))
    stored = commit(event)
    assert Codec().decode(Codec().encode(stored)) == stored


@settings(max_examples=50)
@given(COMMITS)
def test_a_commit_comes_back_as_it_went_in(stored: Commit) -> None:
    codec = Codec()
    payload = codec.encode(stored)
    assert codec.decode(payload) == stored
    assert codec.encode(codec.decode(payload)) == payload


@settings(max_examples=50)
@given(COMMITS, st.dictionaries(TEXT.map("new_{}".format), JSON_VALUES, min_size=1, max_size=3))
def test_members_that_are_not_known_are_passed_over(stored: Commit, more: dict[str, Any]) -> None:
    """A reader of today reads what a writer of tomorrow added."""
    codec = Codec()
    loose = msgspec.json.decode(codec.encode(stored), type=dict[str, msgspec.Raw])
    events = msgspec.json.decode(loose["events"], type=list[dict[str, msgspec.Raw]])
    extra = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in more.items()}
    widened = loose | extra | {"events": msgspec.Raw(msgspec.json.encode([event | extra for event in events]))}
    assert codec.decode(msgspec.json.encode(widened)) == stored


@settings(max_examples=50)
@given(COMMITS)
def test_the_type_need_not_stand_first(stored: Commit) -> None:
    """Other writers of JSON order members as they like."""
    loose = msgspec.json.decode(Codec().encode(stored), type=dict[str, msgspec.Raw])
    events = msgspec.json.decode(loose["events"], type=list[dict[str, msgspec.Raw]])
    turned = [dict(reversed(event.items())) for event in events]
    payload = msgspec.json.encode(loose | {"events": msgspec.Raw(msgspec.json.encode(turned))})
    assert Codec().decode(payload) == stored


@given(st.binary(max_size=40))
def test_bytes_that_are_no_commit_are_named_so(payload: bytes) -> None:
    with pytest.raises(BrokenCommit, match=r"state\.g1\.00\.t\.inbox\.r"):
        Codec().decode(payload, subject="state.g1.00.t.inbox.r")


def test_a_broken_event_is_named_with_its_commit() -> None:
    payload = Codec().encode(commit(e.TimerFired(timer="2.1"))).replace(b'"2.1"', b"21")
    with pytest.raises(BrokenCommit, match=r"commit 3 of state\.x: .*str.*events\[0\]\.timer") as caught:
        Codec().decode(payload, subject="state.x")
    assert (caught.value.subject, caught.value.version) == ("state.x", 3)


def test_json_nested_too_deep_is_a_broken_commit() -> None:
    deep = b'{"x":' * 100_000 + b"1" + b"}" * 100_000
    with pytest.raises(BrokenCommit):
        Codec().decode(b'{"version":1,"events":[],"z":' + deep + b"}")


def test_an_event_type_of_a_newer_program_is_named() -> None:
    payload = Codec().encode(commit(e.TimerFired(timer="2.1"))).replace(b"TimerFired", b"TimerMoved")
    with pytest.raises(UnknownEventType, match=r"commit 3 of an unnamed run: unknown event type 'TimerMoved'"):
        Codec().decode(payload)


@pytest.mark.parametrize("value", ["\ud800", object()], ids=["lone surrogate", "foreign object"])
def test_what_json_cannot_hold_is_refused_when_it_is_written(value: object) -> None:
    with pytest.raises(UnstorableCommit, match="commit 3"):
        Codec().encode(commit(e.FieldsSet(row="R1", fields={"x": value})))


def raised() -> Registry:
    """A registry in which TimerArmed is at version 3; version 1 had `kind`, version 2 seconds."""
    registry = Registry(engine_schemas={"TimerArmed": 3})

    @registry.upcaster("TimerArmed", from_version=1)
    def renamed(old: dict[str, Any]) -> dict[str, Any]:
        return {("class" if name == "kind" else name): value for name, value in old.items()}

    @registry.upcaster("TimerArmed", from_version=2)
    def milliseconds(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "due": old["due"] * 1000}

    return registry


PUBLISHED = (
    b'{"type":"EventPublished","event":"A","schema":1,"payload":{"n": 1e2,"big":123456789012345678901234567890}}'
)


def old_commit(schemas: bytes, timer: bytes) -> bytes:
    head = b'{"version":7,"walk":1,"at":5,"actor":"a","definition":"d"'
    return head + schemas + b',"events":[' + PUBLISHED + b',{"type":"TimerArmed",' + timer + b"}]}"


@pytest.mark.parametrize(
    ("schemas", "timer"),
    [
        (b"", b'"kind":"retry","due":9,"about":"x"'),
        (b',"schemas":{"TimerArmed":2}', b'"class":"retry","due":9,"about":"x"'),
        (b',"schemas":{"TimerArmed":3}', b'"class":"retry","due":9000,"about":"x"'),
    ],
    ids=["version 1", "version 2 fits and means something else", "version 3"],
)
def test_older_versions_are_upcast_and_the_rest_stays_byte_for_byte(schemas: bytes, timer: bytes) -> None:
    codec = Codec(raised())
    read = codec.decode(old_commit(schemas, timer))
    assert read.events[1] == e.TimerArmed(timer_class="retry", due=9000, about="x")
    assert read.schemas is None
    published = read.events[0]
    assert isinstance(published, e.EventPublished)
    assert bytes(published.payload) == b'{"n": 1e2,"big":123456789012345678901234567890}'


def test_a_raised_version_is_written_into_the_bytes() -> None:
    codec = Codec(raised())
    stored = commit(e.TimerArmed(timer_class="retry", due=9000, about="x"), e.TimerFired(timer="1.0"))
    payload = codec.encode(stored)
    assert msgspec.json.decode(payload)["schemas"] == {"TimerArmed": 3}
    assert codec.decode(payload) == stored


def test_a_newer_version_is_refused_though_its_bytes_fit() -> None:
    payload = Codec(raised()).encode(commit(e.TimerArmed(timer_class="retry", due=9000, about="x")))
    with pytest.raises(CommitTooNew, match="TimerArmed is of version 3, 1 is the newest here"):
        Codec().decode(payload)


def test_a_missing_upcaster_is_named() -> None:
    registry = Registry(engine_schemas={"TimerArmed": 2})
    with pytest.raises(MissingUpcaster, match="TimerArmed is at version 2"):
        registry.check()
    with pytest.raises(MissingUpcaster, match="TimerArmed is at version 2"):
        Codec(registry).decode(old_commit(b"", b'"kind":"retry","due":9,"about":"x"'))


def test_an_upcaster_that_fails_names_the_commit() -> None:
    registry = Registry(engine_schemas={"TimerArmed": 2})

    @registry.upcaster("TimerArmed", from_version=1)
    def fails(old: dict[str, Any]) -> dict[str, Any]:
        return {"class": old["gone"]}

    with pytest.raises(BrokenCommit, match=r"commit 7 of .*upcasting TimerArmed from 1: KeyError\('gone'\)"):
        Codec(registry).decode(old_commit(b"", b'"kind":"retry","due":9,"about":"x"'))


def test_headers_name_types_once_and_schemas_above_one() -> None:
    published = e.EventPublished(event="Mail", schema=2, payload=msgspec.Raw(b"{}"))
    stored = commit(e.TimerFired(timer="1.0"), published, published, e.TimerFired(timer="1.1"))
    headers = commit_headers(stored, causation="c1", correlation="c0")
    assert headers[TYPES] == "TimerFired,EventPublished/Mail"
    assert types_of(headers) == frozenset(("TimerFired", "EventPublished", "Mail"))
    assert headers[SCHEMAS] == "Mail:2"
    assert schemas_of(headers) == {"Mail": 2}
    assert headers["Waybook-Causation"] == "c1"
    assert "Waybook-Prev" not in headers


def test_a_header_cannot_be_broken_out_of() -> None:
    with pytest.raises(InvalidInput, match="Waybook-Causation"):
        commit_headers(commit(e.TimerFired(timer="1.0")), causation="c1\r\nNats-Rollup: all")


def test_a_commit_id_depends_on_place_and_bytes_and_is_a_lower_case_token() -> None:
    ids = {commit_id(s, n, p) for s in ("state.a", "state.b") for n in (0, 1) for p in (b"{}", b"{ }")}
    assert len(ids) == 8
    assert all(len(i) == 64 and i == i.lower() and i.isalnum() for i in ids)
    assert commit_id("state.a", 0, b"{}") == hashlib.sha256(b"state.a\x000\x00{}").hexdigest()

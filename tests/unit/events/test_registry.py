"""Typed events by name: unique, versioned, and readable where their class is not known."""

from typing import Annotated, Any, cast

import msgspec
import pytest

from waybook.events.engine import EventPublished
from waybook.events.registry import (
    DuplicateEventName,
    MissingUpcaster,
    Registry,
    RegistryError,
    SchemaTooNew,
    UnreadableEvent,
    UnstorableEvent,
    origin_of,
)
from waybook.events.typed import Event, Personal, StartEvent, StopEvent, UnknownEvent


class MailArrived(StartEvent, frozen=True, kw_only=True):
    SCHEMA = 3
    sender: Annotated[str, Personal]
    subject: str = ""
    copies: tuple[str, ...] = ()


class Answered(StopEvent, frozen=True, kw_only=True):
    result: int


class PoliteAnswer(Answered, frozen=True, kw_only=True):
    greeting: str


def made(name: str, fields: list[tuple[str, type]] | None = None, module: str | None = None) -> type[Event]:
    cls = msgspec.defstruct(name, fields or [], bases=(Event,), module=module, frozen=True, kw_only=True)
    return cast("type[Event]", cls)


def registry_of_mail() -> Registry:
    registry = Registry(MailArrived)

    @registry.upcaster("MailArrived", from_version=1)
    def renamed(old: dict[str, Any]) -> dict[str, Any]:
        return {"sender": old["from"], **{k: v for k, v in old.items() if k != "from"}}

    @registry.upcaster("MailArrived", from_version=2)
    def copies(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "copies": old.get("cc", "").split()}

    registry.check()
    return registry


def published(name: str, payload: bytes, schema: int = 1, ancestors: tuple[str, ...] = ()) -> EventPublished:
    return EventPublished(event=name, schema=schema, payload=msgspec.Raw(payload), ancestors=ancestors)


def test_what_is_published_is_read_again() -> None:
    registry = Registry(PoliteAnswer)
    event = PoliteAnswer(result=4, greeting="hello")
    stored = registry.publish(event, action="2.1", branch="b")
    assert (stored.event, stored.schema, stored.ancestors) == ("PoliteAnswer", 1, ("Answered", "StopEvent"))
    assert (stored.action, stored.request, stored.branch) == ("2.1", None, "b")
    assert registry.read(stored) == event


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (1, b'{"from":"a@b.example","cc":"c d"}'),
        (2, b'{"sender":"a@b.example","cc":"c d"}'),
        (3, b'{"sender":"a@b.example","copies":["c","d"]}'),
    ],
)
def test_a_payload_of_any_version_becomes_the_present_class(schema: int, payload: bytes) -> None:
    read = registry_of_mail().read(published("MailArrived", payload, schema))
    assert read == MailArrived(sender="a@b.example", copies=("c", "d"))


def test_a_payload_of_a_newer_version_is_refused() -> None:
    with pytest.raises(SchemaTooNew, match="MailArrived is of version 4, and 3 is the newest"):
        registry_of_mail().read(published("MailArrived", b"{}", 4))


def test_a_raised_schema_without_upcaster_is_found_before_it_is_needed() -> None:
    registry = Registry(MailArrived)
    with pytest.raises(MissingUpcaster, match="MailArrived is at version 3 and has no upcaster from version 1"):
        registry.check()


def test_an_event_has_one_upcaster_from_each_version() -> None:
    registry = registry_of_mail()
    with pytest.raises(RegistryError, match="two upcasters from version 1"):
        registry.upcaster("MailArrived", from_version=1)(lambda old: old)


def test_a_payload_that_does_not_fit_is_named() -> None:
    with pytest.raises(UnreadableEvent, match=r"event Answered version 1: .*\$\.result"):
        Registry(Answered).read(published("Answered", b'{"result":"four"}'))


def test_two_classes_of_one_name_are_refused_with_both_places() -> None:
    twin = made("Answered", module="elsewhere.events")
    registry = Registry(Answered)
    registry.add(Answered)
    with pytest.raises(DuplicateEventName, match=r"`Answered` already exists in module .*test_registry") as caught:
        registry.add(twin)
    assert "test_registry.py" in str(caught.value)
    assert "elsewhere.events (no file)" in str(caught.value)
    assert caught.value.code == "DUPLICATE_EVENT_NAME"


@pytest.mark.parametrize("name", ["StepBegan", "Größe", "A" * 65])
def test_names_of_engine_events_and_names_no_header_takes_are_refused(name: str) -> None:
    cls = made(name)
    with pytest.raises(RegistryError):
        Registry(cls)


def test_an_event_of_a_class_that_was_never_added_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"`Answered` in module .* is not registered"):
        Registry().publish(Answered(result=1))


def test_what_json_cannot_hold_is_refused_when_it_is_published() -> None:
    with pytest.raises(UnstorableEvent, match="PoliteAnswer"):
        Registry(PoliteAnswer).publish(PoliteAnswer(result=1, greeting="\udcff"))


PAYLOAD = b'{"greeting": "hi", "result":4,"tone":[1e2,123456789012345678901234567890]}'


@pytest.mark.parametrize(
    ("known", "kind"), [((Answered,), Answered), ((), StopEvent)], ids=["a near ancestor", "a base only"]
)
def test_an_unknown_class_becomes_its_nearest_known_ancestor_and_loses_nothing(
    known: tuple[type[Event], ...], kind: type[Event]
) -> None:
    """A caller that does not have the worker's classes still sees how its run ended, and what it said."""
    registry = Registry(*known)
    stored = published("PoliteAnswer", PAYLOAD, 2, ("Answered", "StopEvent"))
    read = registry.read(stored)
    assert isinstance(read, kind)
    assert type(read).__name__ == "PoliteAnswer"
    origin = origin_of(read)
    assert origin is not None
    assert origin.fields()["greeting"] == "hi"
    assert registry.publish(read) == stored
    assert not isinstance(read, Answered) or read.result == 4


def test_an_ancestor_that_no_longer_fits_is_passed_over() -> None:
    read = Registry(Answered).read(published("PoliteAnswer", b'{"result":"?"}', 1, ("Answered", "StopEvent")))
    assert isinstance(read, StopEvent)
    assert not isinstance(read, Answered)


def test_without_a_known_ancestor_name_and_fields_are_kept() -> None:
    registry = Registry()
    stored = published("Riddle", PAYLOAD, 7)
    read = registry.read(stored)
    assert isinstance(read, UnknownEvent)
    assert (read.stored_as.event, read.stored_as.schema) == ("Riddle", 7)
    assert read.stored_as.fields()["result"] == 4
    assert registry.publish(read) == stored


def test_a_field_name_that_stand_ins_need_is_refused() -> None:
    cls = made("Clash", [("stored_as", str)])
    with pytest.raises(RegistryError, match="stored_as"):
        Registry(cls)


def test_fields_marked_personal_are_known_by_name_and_through_ancestors() -> None:
    registry = Registry(MailArrived)
    assert registry.personal("MailArrived") == {"sender"}
    assert registry.personal("Unknown", ("MailArrived",)) == {"sender"}
    assert registry.personal("Unknown") == frozenset()

"""The exported JSON Schema says what is really stored."""

from typing import Annotated, Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from tests.unit.events.strategies import COMMITS

from waybook.events.codec import Codec
from waybook.events.command import Answer, Command
from waybook.events.commit import Commit
from waybook.events.engine import ENGINE_EVENTS
from waybook.events.errors import InvalidInput
from waybook.events.registry import Registry
from waybook.events.schema import described, export, export_type, references
from waybook.events.typed import Event, Personal

COMMIT_SCHEMA = jsonschema_rs.validator_for(export())


class Letter(Event, frozen=True, kw_only=True):
    """A letter came."""

    SCHEMA = 2
    sender: Annotated[str, Personal]


def made(name: str) -> type[Event]:
    return msgspec.defstruct(name, [("text", str)], bases=(Event,), frozen=True, kw_only=True)  # type: ignore[return-value]


def builtins(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_the_export_is_a_schema_of_the_dialect_that_it_names() -> None:
    assert jsonschema_rs.meta.is_valid(export())
    assert export()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", [d.name for d in described()])
def test_every_type_has_a_schema_of_its_own_that_needs_no_other_file(name: str) -> None:
    document = export_type(name)
    assert jsonschema_rs.meta.is_valid(document)
    assert references(document) <= {f"#/$defs/{key}" for key in document["$defs"]}
    assert document["$defs"][name]["x-version"] == 1


@settings(max_examples=40)
@given(COMMITS)
def test_every_commit_satisfies_the_schema(commit: Commit) -> None:
    COMMIT_SCHEMA.validate(msgspec.json.decode(Codec().encode(commit)))


@pytest.mark.parametrize("name", sorted(ENGINE_EVENTS))
def test_an_event_without_its_members_does_not(name: str) -> None:
    commit = {"version": 1, "walk": 1, "at": 1, "actor": "a", "definition": "d", "events": [{"type": name}]}
    assert not COMMIT_SCHEMA.is_valid(commit)


def test_commands_and_answers_satisfy_theirs() -> None:
    command = Command(id="c", verb="approve", issued_at=1, actor="ann", payload=msgspec.Raw(b'{"digest":"x"}'))
    assert jsonschema_rs.is_valid(export_type("Command"), builtins(command))
    assert jsonschema_rs.is_valid(export_type("Answer"), builtins(Answer(ok=True, command="c", run="r")))
    assert not jsonschema_rs.is_valid(export_type("Answer"), {"ok": True})


def test_typed_events_are_described_with_version_and_personal_fields() -> None:
    registry = Registry(Letter)
    letter = export(registry)["$defs"]["Letter"]
    assert (letter["x-kind"], letter["x-version"]) == ("typed event", 2)
    assert letter["properties"]["sender"] == {"type": "string", "x-personal": True}
    assert {d.name: d.description for d in described(registry)}["Letter"] == "A letter came."


def test_a_typed_event_may_have_the_name_of_an_envelope() -> None:
    registry = Registry(made("Answer"))
    document = export_type("Answer", registry)
    assert jsonschema_rs.is_valid(document, {"text": "x"})
    assert jsonschema_rs.validator_for(export(registry)) is not None


def test_an_unknown_type_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"no type 'StepBegun'; there are: .*StepBegan"):
        export_type("StepBegun")

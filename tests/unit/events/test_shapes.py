"""What is stored stays readable: shapes change with their version, and samples of every version are read."""

from pathlib import Path

import msgspec
import pytest
from tests.unit.events import shapes

from waybook.events.codec import Codec
from waybook.events.commit import Commit
from waybook.events.engine import ENGINE_EVENTS
from waybook.events.registry import Registry

SAMPLES = Path(__file__).parent / "samples"
HOW = "run `python -m tests.unit.events.shapes`: it writes a change that old events survive, or says what to do"


@pytest.mark.parametrize("name", sorted(shapes.current().keys() | shapes.stored().keys()))
def test_a_shape_changes_with_its_version_only(name: str) -> None:
    old, new = shapes.stored().get(name), shapes.current().get(name)
    assert old is not None, HOW
    assert shapes.breaks(old, new) == [], "raise SCHEMA, add an upcaster and a sample of the old version"
    assert new == old, HOW


@pytest.mark.parametrize("name", sorted(ENGINE_EVENTS))
def test_samples_of_every_version_of_an_engine_event_are_read(name: str) -> None:
    """Each sample sets every member, so a member that is renamed or retyped without an upcaster shows."""
    codec, current = Codec(), Registry().engine_schemas[name]
    for version in range(1, current + 1):
        sample = (SAMPLES / f"{name}.{version}.json").read_bytes().strip()
        schemas = b',"schemas":{"%s":%d}' % (name.encode(), version) if version > 1 else b""
        head = b'{"version":1,"walk":1,"at":1,"actor":"a","definition":"d"' + schemas
        (event,) = codec.decode(head + b',"events":[' + sample + b"]}").events
        assert type(event) is ENGINE_EVENTS[name]
        if version == current:
            assert msgspec.json.encode(event) == sample
            assert len(msgspec.json.decode(sample)) == len(event.__struct_fields__) + 1


def test_every_upcaster_of_the_engine_is_there() -> None:
    Registry().check()


def shape(version: int = 1, **members: str) -> shapes.Shape:
    """A shape whose members are of the given types; a type that ends in `?` may be left out."""
    properties = {name: {"type": kind.rstrip("?")} for name, kind in members.items()}
    required = [name for name, kind in members.items() if not kind.endswith("?")]
    return shapes.Shape(version, {"X": {"type": "object", "properties": properties, "required": required}})


OLD = shape(a="string", b="integer?")


@pytest.mark.parametrize(
    "new",
    [shape(a="string", b="integer?", c="string?"), shape(2, a="integer")],
    ids=["a new member that may be left out", "a raised version"],
)
def test_changes_that_old_events_survive_are_let_through(new: shapes.Shape) -> None:
    assert shapes.breaks(OLD, new) == []


@pytest.mark.parametrize(
    "new",
    [
        shape(a="string", b="integer?", c="string"),
        shape(a="string"),
        shape(a="string", b="string?"),
        shape(a="string", b="integer"),
        shape(a="string?", b="integer?"),
        shape(0, a="string", b="integer?"),
        None,
    ],
    ids=["new and required", "gone", "retyped", "now required", "now optional", "lowered version", "type gone"],
)
def test_any_other_change_is_found(new: shapes.Shape | None) -> None:
    assert shapes.breaks(OLD, new) != []


def test_a_commit_without_its_events_is_watched_too() -> None:
    assert set(shapes.stored()["Commit"].defs["Commit"]["properties"]) == {
        field.encode_name for field in msgspec.structs.fields(Commit)
    }

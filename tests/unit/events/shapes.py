"""The shapes of stored events, as they were last agreed on.

`python -m tests.unit.events.shapes` writes `shapes.json` after a change that old readers and old events survive (a new
member that may be left out), or after a raise of `SCHEMA`; it refuses anything else.
"""

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from waybook.events.schema import described, export_type

FILE = Path(__file__).parent / "shapes.json"
NO_SHAPE = ("title", "description", "x-kind", "x-version")


class Shape(msgspec.Struct):
    """A type's JSON Schema at a version, without words."""

    version: int
    defs: dict[str, Any]


@cache
def current() -> dict[str, Shape]:
    """The shapes that the code has now, of everything that is stored or sent."""
    shapes = {}
    for item in described():
        if item.kind == "typed event":
            continue
        defs = bare(export_type(item.name)["$defs"])
        if item.name == "Commit":  # which events there are is no part of its own shape
            defs = {"Commit": defs["Commit"]}
            del defs["Commit"]["properties"]["events"]["items"]
        shapes[item.name] = Shape(item.version, defs)
    return msgspec.json.decode(msgspec.json.encode(shapes), type=dict[str, Shape])


@cache
def stored() -> dict[str, Shape]:
    """The shapes that were agreed on."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Shape])


def bare(schema: Any) -> Any:
    """A schema without what says nothing about the shape; a member may be called `title`, so names are kept."""
    if isinstance(schema, Mapping):
        return {
            key: {name: bare(member) for name, member in value.items()} if key == "properties" else bare(value)
            for key, value in schema.items()
            if key not in NO_SHAPE or isinstance(value, Mapping)
        }
    return [bare(value) for value in schema] if isinstance(schema, list) else schema


def breaks(old: Shape, new: Shape | None) -> list[str]:
    """What of `new` an old reader or an old event would not survive, unless the version was raised."""
    if new is None:
        return ["the type is gone, and its events are still stored"]
    if new.version > old.version:
        return []
    if new.version < old.version:
        return [f"the version went from {old.version} back to {new.version}"]
    found = []
    for name, before in old.defs.items():
        after = new.defs.get(name)
        if after is None:
            found.append(f"{name} is gone")
        elif before != _without_new_members(before, after):
            found.append(f"{name} has changed in more than new members that may be left out")
    return found


def _without_new_members(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    if "properties" not in before or "properties" not in after:
        return after
    kept = {
        name: member
        for name, member in after["properties"].items()
        if name in before["properties"] or name in after["required"]
    }
    return {**after, "properties": kept}


def main() -> int:
    before, now = stored() if FILE.exists() else {}, current()
    broken = [f"{name}: {text}" for name, old in before.items() for text in breaks(old, now.get(name))]
    if broken:
        sys.stderr.write("raise SCHEMA, add an upcaster and a sample of the old version:\n" + "\n".join(broken) + "\n")
        return 1
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(now, order="sorted"), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Reads a topology file; every mistake is reported with its line."""

from importlib import resources
from pathlib import Path
from typing import Annotated, get_args, get_origin

import msgspec
import yaml

from waybook.adapters.nats.topology.declaration import Topology
from waybook.adapters.nats.topology.errors import Problem, TopologyFileError
from waybook.adapters.nats.topology.quantity import parse_count, parse_duration, parse_size
from waybook.adapters.nats.topology.rules import broken_rules
from waybook.events.errors import InvalidInput

FILE_NAME = "streams.yaml"
_PARSERS = {"duration": parse_duration, "size": parse_size, "count": parse_count}
_MISSING = object()  # a value that could not be read; its problem is already noted


def default_file() -> Path:
    """The project's own streams.yaml: beside the package when installed, at the top of a checkout otherwise."""
    installed = Path(str(resources.files("waybook.adapters.nats"))) / FILE_NAME
    checkout = Path(__file__).resolve().parents[5] / FILE_NAME
    return installed if installed.is_file() else checkout


def load_topology(path: Path | None = None) -> Topology:
    """The topology that `path` declares, by default the project's own `streams.yaml`.

    Raises TopologyFileError with `file:line` of every unknown key, wrong value, missing field and every
    declaration that breaks an invariant; InvalidInput when there is no such file.
    """
    file = path or default_file()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read the topology file {file}: {error}; name another one with --file") from error
    return parse_topology(text, str(file))


def parse_topology(text: str, file: str) -> Topology:
    """The topology in `text`; `file` is its name in messages. Raises TopologyFileError."""
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise TopologyFileError(file, [Problem(line, f"not YAML: {error.problem}")]) from error
    if root is None:
        raise TopologyFileError(file, [Problem(1, "the file is empty")])
    reader = _Reader()
    topology = reader.read(root, Topology, "")
    if not reader.problems and isinstance(topology, Topology):
        broken = broken_rules(topology)
        if not broken:
            return topology
        reader.problems = [Problem(reader.line(place), text) for place, text in broken]
    raise TopologyFileError(file, reader.problems)


class _Reader:
    """Walks YAML nodes and types side by side; `lines` maps a dotted path to the line of its key."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}

    def line(self, path: str) -> int:
        """The line of `path`, or of the nearest thing above it that the file mentions."""
        while path and path not in self.lines:
            path = path.rpartition("/")[0]
        return self.lines.get(path, 1)

    def read(self, node: yaml.Node, kind: object, path: str) -> object:
        """The value of `node` as `kind`."""
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(node, kind, path)
        if get_origin(kind) is dict:
            return self._mapping(node, get_args(kind)[1], path)
        return self._leaf(node, kind, path)

    def _note(self, node: yaml.Node, text: str) -> object:
        self.problems.append(Problem(node.start_mark.line + 1, text))
        return _MISSING

    def _entries(self, node: yaml.Node, path: str) -> dict[str, tuple[yaml.Node, yaml.Node]] | None:
        """Key and value nodes by key; None when it is no mapping."""
        if not isinstance(node, yaml.MappingNode):
            self._note(node, f"{_name(path)} must hold keys and values")
            return None
        entries: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if key.value in entries:
                self._note(key, f"{_name(path)} has the key `{key.value}` twice")
            entries[key.value] = (key, value)
            self.lines[f"{path}/{key.value}"] = key.start_mark.line + 1
        return entries

    def _struct(self, node: yaml.Node, kind: type[msgspec.Struct], path: str) -> object:
        entries = self._entries(node, path)
        if entries is None:
            return _MISSING
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for key in entries.keys() - fields.keys():
            self._note(entries[key][0], f"unknown key `{key}` in {_name(path)}; allowed: {', '.join(fields)}")
        for name, field in fields.items():
            if field.required and name not in entries:
                self._note(node, f"{_name(path)} lacks the key `{name}`")
        values = {
            field.name: self.read(entries[name][1], field.type, f"{path}/{name}")
            for name, field in fields.items()
            if name in entries
        }
        return _MISSING if self.problems else kind(**values)

    def _mapping(self, node: yaml.Node, kind: object, path: str) -> object:
        entries = self._entries(node, path)
        if entries is None:
            return _MISSING
        return {name: self.read(value, kind, f"{path}/{name}") for name, (_, value) in entries.items()}

    def _leaf(self, node: yaml.Node, kind: object, path: str) -> object:
        value = _plain(node)
        unit = (
            next((meta.extra["unit"] for meta in get_args(kind)[1:] if meta.extra), None) if _annotated(kind) else None
        )
        try:
            return _PARSERS[unit](value) if unit else msgspec.convert(value, kind, strict=True)
        except (msgspec.ValidationError, ValueError) as error:
            return self._note(node, f"`{path.rpartition('/')[2]}` in {_name(path.rpartition('/')[0])}: {error}")


def _annotated(kind: object) -> bool:
    return get_origin(kind) is Annotated


def _plain(node: yaml.Node) -> object:
    """The Python value of a node."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _name(path: str) -> str:
    return path.strip("/").replace("/", ".") or "the file"

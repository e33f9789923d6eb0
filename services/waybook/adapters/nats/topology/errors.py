"""Errors of the topology."""

import msgspec

from waybook.engine.ports import PortMisconfigured
from waybook.events.errors import InvalidInput


class Problem(msgspec.Struct, frozen=True):
    """One mistake in a topology file, `line` counted from 1."""

    line: int
    text: str


class TopologyFileError(InvalidInput):
    """The topology file cannot be used. The message lists every problem as `file:line: text`."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = sorted(problems, key=lambda problem: problem.line)
        super().__init__("\n".join(f"{file}:{problem.line}: {problem.text}" for problem in self.problems))


class NeedsPerson(PortMisconfigured):
    """A stored setting differs and cannot be changed without risk; nothing was changed. The message says what to do."""

"""What the checks of a definition found, each with its place and the way out."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

Level = Literal["error", "warning"]

WARNINGS = frozenset(
    {
        "OPTIONAL_WITHOUT_PRECONDITION",
        "IMPLICIT_OPTIONAL",
        "CONFIG_LIE",
        "DOUBLE_DIP",
        "CONTEXT_SMUGGLE",
        "LIST_FEEDS_STOP",
        "PRECONDITION_STRICTER",
        "NO_STOP",
    }
)
"""Codes that do not keep an agent from running; all others do."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding. `message` names step and parameter and says what to do; `file` and `line` where it stands."""

    code: str
    message: str
    agent: str
    step: str | None = None
    parameter: str | None = None
    file: str = ""
    line: int = 0

    @property
    def level(self) -> Level:
        return "warning" if self.code in WARNINGS else "error"

    def __str__(self) -> str:
        return f"{self.file or '<unknown>'}:{self.line}: {self.level} {self.code}: {self.message}"


class Place(msgspec.Struct, frozen=True):
    """Where something is written: the agent, the step, the file and the line."""

    agent: str
    step: str | None = None
    file: str = ""
    line: int = 0

    def finding(self, code: str, message: str, parameter: str | None = None, line: int | None = None) -> Finding:
        """A finding at this place, or at another line of its file."""
        return Finding(code, message, self.agent, self.step, parameter, self.file, line or self.line)


def place_of(function: Callable[..., Any] | type, agent: str, step: str | None = None) -> Place:
    """Where a function, under its decorators, or a class is written, as far as Python knows."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is not None:
        return Place(agent, step, code.co_filename, code.co_firstlineno)
    try:
        file = inspect.getsourcefile(function) or ""
        return Place(agent, step, file, inspect.getsourcelines(function)[1])
    except (OSError, TypeError):  # an interactive session
        return Place(agent, step)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that keep the agent from running."""
    return tuple(f for f in findings if f.level == "error")

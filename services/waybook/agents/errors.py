"""Errors that an agent's author meets or raises."""

from typing import TYPE_CHECKING

from waybook.events.errors import RetryableError, TerminalError

if TYPE_CHECKING:
    from waybook.agents.findings import Finding


class DefinitionError(TerminalError):
    """An agent's definition cannot work; the message names step, parameter, file, line and the way out.

    `findings` are the errors that `check` found, when it was one of these.
    """

    def __init__(self, message: str, findings: "tuple[Finding, ...]" = ()) -> None:
        super().__init__(message)
        self.findings = findings


class ReadOnlyContext(TerminalError):
    """A precondition tried to change a context."""


class NotPure(TerminalError):
    """A precondition waited for something; it is asked in the middle of a decision and has to answer at once."""


class IncompleteAgentReference(TerminalError):
    """Work was handed to an agent without a name; it would wait for ever."""

    code = "INCOMPLETE_AGENT_REFERENCE"


class NonRetryable(TerminalError):
    """Raised by a step: trying again cannot help, so the action fails once and is marked exhausted."""


MOST_WAIT_S = 366 * 86_400.0
"""A year: nobody who asks to be left alone for longer will be asked again by a timer."""


class RetryAfter(RetryableError):
    """Raised by a step that was told to wait: not before `seconds` from now, 0 to a year. ValueError for anything else."""

    def __init__(self, seconds: float, message: str | None = None) -> None:
        if not 0 <= seconds <= MOST_WAIT_S:
            raise ValueError(f"RetryAfter takes 0 to {MOST_WAIT_S:.0f} seconds, not {seconds!r}")
        super().__init__(message or f"told to wait {seconds:g} s")
        self.seconds = seconds


class UndeclaredOutput(TerminalError):
    """A step returned what its annotation does not name."""


class StepDeadlinePassed(RetryableError):
    """A step ran longer than its deadline."""

"""Errors that an agent's author meets or raises."""

from waybook.events.errors import RetryableError, TerminalError


class DefinitionError(TerminalError):
    """An agent's definition cannot work; the message names step, parameter and the way out."""


class NonRetryable(TerminalError):
    """Raised by a step: trying again cannot help, so the action fails once and is marked exhausted."""


class RetryAfter(RetryableError):
    """Raised by a step that was told to wait: not before `seconds` from now."""

    def __init__(self, seconds: float, message: str | None = None) -> None:
        super().__init__(message or f"told to wait {seconds:g} s")
        self.seconds = seconds


class UndeclaredOutput(TerminalError):
    """A step returned what its annotation does not name."""


class StepDeadlinePassed(RetryableError):
    """A step ran longer than its deadline."""

"""Errors of the pure core."""

from waybook.events.errors import TerminalError


class HistoryHole(TerminalError):
    """A commit does not follow the one before it; the history read is incomplete."""


class GateFailed(TerminalError):
    """The precondition of a step raised."""

    def __init__(self, step: str, cause: Exception) -> None:
        self.step = step
        self.cause = cause
        super().__init__(f"the precondition of {step} raised {type(cause).__name__}: {cause}")


class RowFailed(TerminalError):
    """A guard, a field or a reason of a lifecycle row raised. `row` is the row's name."""

    def __init__(self, row: str, cause: Exception) -> None:
        self.row = row
        super().__init__(f"lifecycle row {row} raised {type(cause).__name__}: {cause}")

"""Errors of the pure core."""

from waybook.events.errors import TerminalError


class HistoryHole(TerminalError):
    """A commit does not follow the one before it; the history read is incomplete."""


MOST_ERROR_TEXT = 4000
"""Characters of an exception's text that a commit keeps."""


def text_of(error: BaseException) -> str:
    """What an exception of an author's says, as far as a commit can hold it; its class where it says nothing.

    Lone surrogates, which names of files and raw mails bring in, become question marks.
    """
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001  an author's own `__str__` may raise anything
        return f"{name}, whose text cannot be made: {type(broken).__name__}"
    if not isinstance(error, Exception):
        text = f"{name}: {text}"  # `sys.exit(3)` would say 3
    return (text or name)[:MOST_ERROR_TEXT].encode("utf-8", "replace").decode("utf-8")


class GateFailed(TerminalError):
    """The precondition of a step raised."""

    def __init__(self, step: str, cause: Exception) -> None:
        self.step = step
        self.cause = cause
        super().__init__(f"the precondition of {step} raised {type(cause).__name__}: {text_of(cause)}")


class RowFailed(TerminalError):
    """A guard, a field or a reason of a lifecycle row raised. `row` is the row's name."""

    def __init__(self, row: str, cause: Exception) -> None:
        self.row = row
        super().__init__(f"lifecycle row {row} raised {type(cause).__name__}: {text_of(cause)}")

"""The base of every error that Waybook raises on purpose."""


class WaybookError(Exception):
    """Base class. The docstring of a subclass is its default message."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])


class RetryableError(WaybookError):
    """It may succeed when it is tried again."""


class TerminalError(WaybookError):
    """Trying again cannot help."""


class InvalidInput(TerminalError):
    """What was given cannot be used; the message names the field and the way out."""

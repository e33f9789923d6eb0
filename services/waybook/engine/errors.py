"""Errors of the pure core."""

from waybook.events.errors import TerminalError


class HistoryHole(TerminalError):
    """A commit does not follow the one before it; the history read is incomplete."""


class UnknownRow(TerminalError):
    """A recorded transition names a row that the definition does not have."""

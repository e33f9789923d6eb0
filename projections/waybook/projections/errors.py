"""What can go wrong between the log and the read models."""

from waybook.engine.ports import PortUnavailable
from waybook.events.errors import RetryableError, TerminalError


class ProjectionStopped(TerminalError):
    """The projection cannot go on by itself; the message names the reason and the way out."""


class LogGap(ProjectionStopped):
    """The stream lacks a commit that the read models need: it was deleted from a stream that never deletes."""


class LogShorter(ProjectionStopped):
    """The stream ends before the checkpoint, or holds another commit there: it was lost or replaced."""


class ReaderLost(RetryableError):
    """The consumer must be set to the checkpoint again: it was deleted, jumped, or the server was away."""


class PositionMoved(RetryableError):
    """Another reader moved the checkpoint, or a rebuild swapped the tables; nothing of this batch was stored."""


class RebuildRunning(TerminalError):
    """Another rebuild or verification is under way; one at a time."""


class NoReadModels(TerminalError):
    """This database holds no read models yet; start the projector, or run `waybook projections rebuild`."""


class OutdatedReadModels(TerminalError):
    """An older version of Waybook made these read models and is at work on them; start this version in its place."""


class DatabaseUnavailable(PortUnavailable):
    """PostgreSQL is away, full, or too busy; nothing of what was asked for is half done."""

"""What can go wrong with the servers that Waybook starts itself, and with the data directory they live in."""

from waybook.engine.ports import PortMisconfigured, PortUnavailable
from waybook.events.errors import InvalidInput, RetryableError, TerminalError


class ServerStartFailed(TerminalError):
    """A server did not start; the message holds the last lines of its log."""


class AddressTaken(ServerStartFailed):
    """A port that the server was told to listen on belongs to another program."""


class ProgramMissing(TerminalError):
    """The program of a server is not installed; the message says how to get it or how to do without."""


class DataDirectoryUnusable(InvalidInput):
    """The data directory cannot be made, written or reached; the message names the folder and the way out."""


class DataDirectoryInUse(RetryableError):
    """Another process owns the data directory; the message names it and the way out."""


class ServerUnreachable(PortUnavailable):
    """A server given by its address does not answer; the message names the setting that holds the address."""


class ServerTooOld(PortMisconfigured):
    """The server lacks what Waybook stands on; the message names both versions."""


class ServerUnsuitable(PortMisconfigured):
    """A server given by its address answers but cannot be used: no JetStream, no such database, wrong password."""

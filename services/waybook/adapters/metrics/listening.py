"""The socket of `/metrics`: bound before anything starts, so that a taken port is said at once.

A child process can be given the socket: its address is then known before it starts, and the same after a restart.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from waybook.events.errors import TerminalError

LOOPBACK = "127.0.0.1"


class MetricsMissing(TerminalError):
    """Metrics were asked for, and the library that writes them is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "metrics need prometheus-client: `pip install waybook[metrics]`, or unset WAYBOOK_METRICS_PORT"
        )


class MetricsAddressUnusable(TerminalError):
    """Nobody can listen for readers of metrics there; the message names the address and the way out."""


def library_is_here() -> bool:
    """Whether the extra `metrics` is installed."""
    return find_spec("prometheus_client") is not None


def require_library() -> None:
    """Raises MetricsMissing where the extra `metrics` is not installed."""
    if not library_is_here():
        raise MetricsMissing


@contextmanager
def listening(port: int, host: str = LOOPBACK) -> Iterator[socket.socket]:
    """A listening socket for the time of the block; port 0 takes a free one. Raises MetricsAddressUnusable."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = socket.create_server((host, port), family=family, backlog=16)
    except OSError as error:
        raise MetricsAddressUnusable(
            f"metrics cannot be served at {host}:{port} ({error.strerror or error}); choose another port with "
            "--metrics-port or WAYBOOK_METRICS_PORT (0: any free one, -1: no metrics)"
        ) from error
    with opened:
        yield opened


def address(opened: socket.socket) -> str:
    """Where the metrics of a socket are: http://HOST:PORT/metrics."""
    host, port = opened.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"

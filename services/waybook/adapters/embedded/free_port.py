"""Ports on loopback that stay usable while their server is down."""

import random
import socket
import sys
from pathlib import Path

_LOWEST = 10_240
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that nobody listens on, outside the range from which the system draws ports for outgoing connections.

    In that range, another program's connection may take the port while its server restarts, and a client that keeps
    reconnecting to 127.0.0.1 may be given the very port as its own and connect to itself.
    """
    low, high = _range()
    choices = range(_LOWEST, low) if low - _LOWEST >= 1_000 else range(high + 1, 65_536)
    for _ in range(200):
        port = random.choice(choices) if len(choices) else 0
        if is_free(port):
            return port
    raise OSError("no free port on 127.0.0.1")


def is_free(port: int) -> bool:
    """Whether a server could listen on it now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _range() -> tuple[int, int]:
    """Where the system takes the ports of outgoing connections from: what Linux says, else the IANA range."""
    if sys.platform == "linux" and _RANGE.exists():
        low, high = _RANGE.read_text().split()
        return int(low), int(high)
    return 49_152, 65_535

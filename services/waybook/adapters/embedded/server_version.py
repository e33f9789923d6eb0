"""The oldest nats-server that Waybook works with."""

import re

from waybook.adapters.embedded.errors import ServerTooOld

MINIMUM_VERSION = "2.15.1"


def check_server_version(version: str, *, where: str = "the nats-server") -> None:
    """Raises ServerTooOld for a version below 2.15.1: only from there on is `sync_interval: always` complete.

    `version` is what the server says of itself ("2.15.1", "v2.16.0-RC.1"); a pre-release of the oldest allowed
    version is too old. `where` begins the message.
    """
    if _order(version) < _order(MINIMUM_VERSION):
        raise ServerTooOld(
            f"{where} is version {version or 'unknown'}, Waybook needs {MINIMUM_VERSION} or newer: upgrade it, "
            "or unset WAYBOOK_NATS_URL and WAYBOOK_NATS_SERVER to let Waybook start its own"
        )


def _order(version: str) -> tuple[int, int, int, bool]:
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?(-)?", version)
    if match is None:
        return (0, 0, 0, False)
    major, minor, patch, pre_release = match.groups()
    return (int(major), int(minor), int(patch or 0), pre_release is None)

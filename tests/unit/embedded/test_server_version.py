"""Which nats-servers are too old."""

import pytest

from waybook.adapters.embedded import ServerTooOld, check_server_version


@pytest.mark.parametrize("version", ["2.15.1", "v2.15.1", "2.15.2-RC.1", "2.16.0", "2.16.0-dev", "3.0.0"])
def test_the_floor_and_what_is_newer_is_accepted(version: str) -> None:
    check_server_version(version)


@pytest.mark.parametrize("version", ["2.15.0", "2.15.1-RC.1", "2.14.5", "2.9.25", "1.99.99", "2.15", "", "unknown"])
def test_what_is_older_or_unknown_is_refused_with_both_versions(version: str) -> None:
    with pytest.raises(ServerTooOld, match=r"Waybook needs 2\.15\.1 or newer"):
        check_server_version(version)

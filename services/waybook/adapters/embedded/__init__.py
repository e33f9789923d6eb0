"""The servers that Waybook starts itself where none are given: nats-server and PostgreSQL."""

from waybook.adapters.embedded.data_directory import Addresses, DataDirectory, Owner, Ownership
from waybook.adapters.embedded.errors import (
    AddressTaken,
    DataDirectoryInUse,
    DataDirectoryUnusable,
    ProgramMissing,
    ServerStartFailed,
    ServerTooOld,
    ServerUnreachable,
    ServerUnsuitable,
)
from waybook.adapters.embedded.monitoring import read_monitor
from waybook.adapters.embedded.nats_server import NatsServer
from waybook.adapters.embedded.postgres import Postgres
from waybook.adapters.embedded.server_version import MINIMUM_VERSION, check_server_version
from waybook.adapters.embedded.servers import Given, Servers, servers_for_reading

__all__ = [
    "MINIMUM_VERSION",
    "AddressTaken",
    "Addresses",
    "DataDirectory",
    "DataDirectoryInUse",
    "DataDirectoryUnusable",
    "Given",
    "NatsServer",
    "Owner",
    "Ownership",
    "Postgres",
    "ProgramMissing",
    "ServerStartFailed",
    "ServerTooOld",
    "ServerUnreachable",
    "ServerUnsuitable",
    "Servers",
    "check_server_version",
    "read_monitor",
    "servers_for_reading",
]

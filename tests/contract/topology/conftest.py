"""A nats-server of its own for every test: these tests change streams by hand."""

import contextlib
import json
import shutil
import subprocess
import sysconfig
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import nats
import pytest
from nats.aio.client import Client


class OwnServer(msgspec.Struct, frozen=True):
    """Addresses of a running server."""

    url: str
    monitor_url: str


Start = Callable[..., OwnServer]


def _binary() -> str:
    return shutil.which("nats-server", path=sysconfig.get_path("scripts")) or "nats-server"


def _wait_for_ports(folder: Path, process: subprocess.Popen[bytes]) -> OwnServer:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        for file in folder.glob("*.ports"):
            with contextlib.suppress(ValueError):
                ports = json.loads(file.read_text())
                return OwnServer(ports["nats"][0], ports["monitoring"][0])
        time.sleep(0.01)
    raise RuntimeError(f"nats-server did not start: {(folder / 'log').read_text()}")


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Start]:
    """Starts servers on free ports; `sync` is the server's sync_interval."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(sync: str = "always", jetstream: bool = True) -> OwnServer:
        folder = tmp_path / f"nats{len(processes)}"
        folder.mkdir()
        block = f'jetstream {{ store_dir: "{folder}/store", sync_interval: {sync} }}' if jetstream else ""
        (folder / "server.conf").write_text(
            f'ports_file_dir: "{folder}"\nlisten: "127.0.0.1:-1"\nhttp: "127.0.0.1:-1"\n{block}\n'
        )
        command = [_binary(), "-c", str(folder / "server.conf"), "-l", str(folder / "log")]
        processes.append(subprocess.Popen(command))
        return _wait_for_ports(folder, processes[-1])

    yield start
    for process in processes:
        process.kill()
        process.wait(10)


@pytest.fixture
def server(start_server: Start) -> OwnServer:
    """One server that syncs always."""
    return start_server()


@pytest.fixture
async def nc(server: OwnServer) -> AsyncIterator[Client]:
    """A connection to it."""
    client = await nats.connect(server.url)
    yield client
    await client.close()

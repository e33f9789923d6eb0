"""What a server with permissions forbids is a misconfiguration that names it, never a silence."""

import asyncio
import json
import shutil
import sysconfig
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.ports.adapters_under_test import STREAM, draft

from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.adapters.nats.topology import apply, load_topology
from waybook.engine.ports import PortMisconfigured

CONFIG = """
listen: "127.0.0.1:-1"
ports_file_dir: "{folder}"
jetstream {{ store_dir: "{folder}/store" }}
authorization {{ users: [
  {{ user: admin, password: p }}
  {{ user: reader, password: p, permissions: {{ publish: ["$JS.API.>", "cmd.>"], subscribe: ["_INBOX.>"] }} }}
  {{ user: deaf, password: p, permissions: {{ publish: [">"], subscribe: ["_INBOX_other.>"] }} }}
] }}
"""


def address(folder: Path, within_s: float = 10.0) -> str:
    """The address that a starting server writes into its folder."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        for file in folder.glob("*.ports"):
            if text := file.read_text():
                return str(json.loads(text)["nats"][0])
        time.sleep(0.01)
    raise TimeoutError((folder / "log").read_text())


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a server with permissions and the streams of an installation."""
    config = tmp_path / "server.conf"
    config.write_text(CONFIG.format(folder=tmp_path))
    program = shutil.which("nats-server", path=sysconfig.get_path("scripts")) or "nats-server"
    process = await asyncio.create_subprocess_exec(program, "-c", str(config), "-l", str(tmp_path / "log"))
    try:
        url = await asyncio.to_thread(address, tmp_path)
        async with await opened(url, "admin") as connection:
            await apply(connection.client, load_topology())
        yield url
    finally:
        process.kill()
        await process.wait()


async def opened(url: str, user: str, password: str = "p") -> Connection:
    """A connection of this user."""
    return await Connection.open(NatsSettings(servers=(url,), user=user, password=password, request_timeout_s=3.0))


async def test_a_wrong_password_is_told_at_once(guarded: str) -> None:
    with pytest.raises(PortMisconfigured, match="refuses"):
        await opened(guarded, "admin", "wrong")


async def test_a_user_who_may_not_write_state_is_told_singly_and_in_a_batch(guarded: str) -> None:
    async with await opened(guarded, "reader") as connection:
        log = NatsStateLog(connection, STREAM)
        async with asyncio.timeout(2.0):
            with pytest.raises(PortMisconfigured, match="permissions violation"):
                await log.append(draft("r", 0))
        batch = [log.append(draft(f"r{i}", 0)) for i in range(20)]
        results = await asyncio.gather(*batch, return_exceptions=True)
        assert all(isinstance(r, PortMisconfigured) for r in results)
        assert await NatsCommandQueue(connection).publish("cmd.new.any.cli.t.inbox.r.start", b"{}", command="c1")
        assert connection.refused is not None


async def test_a_user_who_may_not_hear_answers_is_told_at_once(guarded: str) -> None:
    with pytest.raises(PortMisconfigured, match="hear answers"):
        await opened(guarded, "deaf")

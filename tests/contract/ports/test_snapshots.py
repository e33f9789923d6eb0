"""Snapshots: what every adapter does with bytes that may be lost."""

import asyncio
import os

from tests.contract.ports.adapters_under_test import Ports

from waybook.events.subjects import RunKey

KEY = RunKey("test", "inbox", "r1")


async def read(ports: Ports, key: RunKey, wanted: bytes) -> bytes | None:
    """What is kept, once it is that, or after a while: nobody waits for the server at a put."""
    async with asyncio.timeout(10):
        while (found := await ports.snapshots.get(key)) != wanted:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
    return found


async def test_what_was_kept_last_is_read(ports: Ports) -> None:
    """A later snapshot stands in place of an earlier one, also of a longer one in several parts."""
    assert await ports.snapshots.get(KEY) is None
    for size in (10, 3_000_000, 1_000_000, 0):
        data = os.urandom(size)
        await ports.snapshots.put(KEY, data)
        assert await read(ports, KEY, data) == data
    assert await ports.snapshots.get(RunKey("test", "inbox", "r2")) is None


async def test_system_aggregates_are_kept_too(ports: Ports) -> None:
    key = RunKey("test", "@thread", "t1")
    await ports.snapshots.put(key, b"state")
    assert await read(ports, key, b"state") == b"state"

"""A reader of the stream that is told to end, ends."""

import asyncio

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from waybook.events.pull import PullReader


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_that_comes_with_a_message_ends_the_wait_for_it(turns: int) -> None:
    """However many turns of the loop lie between the message and the cancellation, it is not swallowed."""
    client = Client()
    reader = PullReader(client, "STATE", ["state.>"])
    waiting = asyncio.create_task(reader._receive())
    await asyncio.sleep(0.01)
    reader._arrived.put_nowait(Msg(client, "state.g1.00.t.a.r"))
    for _ in range(turns):
        await asyncio.sleep(0)
    cancelled = waiting.cancel()
    [outcome] = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError) == cancelled

"""The bare figure: JetStream with nats-py alone, eleven acknowledged publishes a message (DESIGN 12)."""

import asyncio
import time
from uuid import uuid4

import nats
from nats.js.api import StreamConfig

PUBLISHES = 11
PAYLOAD = b'{"step":"no-op","at":1700000000000,"data":"' + b"x" * 200 + b'"}'


async def bare_messages_s(url: str, messages: int, side_by_side: int) -> float:
    """Messages a second when each takes eleven publishes, one after the other, `side_by_side` messages at once."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    stream = f"BARE_{uuid4().hex[:8]}"
    await js.add_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"]))
    try:
        numbers = iter(range(messages))

        async def one_lane() -> None:
            for number in numbers:
                for _ in range(PUBLISHES):
                    await js.publish(f"{stream}.{number}", PAYLOAD)

        began = time.perf_counter()
        await asyncio.gather(*(one_lane() for _ in range(side_by_side)))
        return messages / (time.perf_counter() - began)
    finally:
        await js.delete_stream(stream)
        await nc.close()

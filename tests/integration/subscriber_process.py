"""A consumer in a process of its own: writes what it sees to a file, and its position now and then to another.

Usage: subscriber_process.py ADDRESS FOLDER. It stores the position after every tenth item only, so that a kill makes
it see some items twice, and never one not at all.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from waybook.events.commit import Position
from waybook.events.subscribe import subscribe


async def main(address: str, folder: Path) -> None:
    stored = folder / "position"
    after = msgspec.json.decode(stored.read_bytes(), type=Position) if stored.exists() else None
    count = 0
    with (folder / "seen").open("a", encoding="utf-8") as seen:
        seen.write("began\n")
        async for item in subscribe(address, after=after, types={"Transitioned", "StepFailed"}):
            for name, event in zip(item.names, item.events, strict=True):
                seen.write(f"{item.position.sequence} {item.key} {name} {type(event).__name__}\n")
            seen.flush()
            count += 1
            if count % 10 == 0:
                new = folder / "position.new"
                new.write_bytes(msgspec.json.encode(item.position))
                new.replace(stored)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

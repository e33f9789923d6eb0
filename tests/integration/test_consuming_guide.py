"""The guide's program runs as it stands, and goes on where it stopped."""

import asyncio
import os
import re
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import nats

from waybook.adapters.nats.topology.applying import apply
from waybook.adapters.nats.topology.file import load_topology
from waybook.events.codec import Codec, commit_headers
from waybook.events.commit import Commit
from waybook.events.engine import EngineEvent, TimerFired, Transitioned
from waybook.events.subjects import RunKey, state_subject
from waybook.testing.servers import NatsUnderTest

GUIDE = Path(__file__).parents[2] / "docs" / "consuming-events.md"
DEADLINE_S = 20.0
KEY = RunKey("acme", "inbox", "r1")


async def lives(program: Path, address: str, book: Path, lines: int) -> list[str]:
    """Runs the program until it has printed so many lines, kills it, and returns them."""
    environment = {**os.environ, "WAYBOOK_NATS_URL": address, "BOOK": str(book)}
    child = await asyncio.create_subprocess_exec(sys.executable, str(program), stdout=PIPE, env=environment)
    assert child.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            return [(await child.stdout.readline()).decode().strip() for _ in range(lines)]
    finally:
        child.kill()
        await child.wait()


async def test_the_guides_program_keeps_its_book_through_a_kill(clean_nats: NatsUnderTest, tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    program, book = tmp_path / "consumer.py", tmp_path / "book.db"
    program.write_text(code, encoding="utf-8")
    connection = await nats.connect(clean_nats.url)
    try:
        await apply(connection, load_topology())
        for version in range(1, 7):
            moved = Transitioned(row="R", from_state="a", to_state="b", on="X")
            events: tuple[EngineEvent, ...] = (moved,) if version % 2 else (TimerFired(timer="1.0"),)
            commit = Commit(version=version, walk=1, at=1, actor="w", definition="d", events=events)
            await connection.jetstream().publish(
                state_subject(KEY), Codec().encode(commit), headers=commit_headers(commit)
            )
    finally:
        await connection.close()
    assert await lives(program, clean_nats.url, book, 2) == ["1 acme.inbox.r1 1.0", "3 acme.inbox.r1 3.0"]
    with sqlite3.connect(book) as opened:
        opened.execute("UPDATE position SET sequence = 3")  # as if it had been killed before the third line
        opened.execute("DELETE FROM facts WHERE event = '5.0'")
    assert await lives(program, clean_nats.url, book, 1) == ["5 acme.inbox.r1 5.0"]
    with sqlite3.connect(book) as opened:
        assert opened.execute("SELECT event FROM facts ORDER BY event").fetchall() == [("1.0",), ("3.0",), ("5.0",)]

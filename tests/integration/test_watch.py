"""Watching a run from another process: what its steps show, resumed by position, each attempt apart."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.integration.shell import MAIN

from waybook.agents import Agent, Displayer, StartEvent, StopEvent, step
from waybook.agents.context import StepContext
from waybook.agents.definition import define
from waybook.events.command import Command, StartPayload
from waybook.events.display import watch
from waybook.events.subjects import RunKey, command_subject
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import Wiring, walker_ports, wired
from waybook.services.walker.walker import Walker, WalkerOptions
from waybook.testing.servers import NatsUnderTest, directory_for_tests

KEY = RunKey("main", "writer", "r" * 26)
WITHIN_S = 60.0


class Topic(StartEvent, frozen=True, kw_only=True):
    """What to write about."""

    name: str


class Text(StopEvent, frozen=True, kw_only=True):
    """What was written."""

    text: str


class Writer(Agent):
    """Writes word by word; its first attempt breaks off."""

    name = "writer"

    @step
    async def write(self, topic: Topic, displayer: Displayer, context: StepContext) -> Text:
        await displayer.progress("thinking", 1, 2)
        whole = await displayer.stream(f"{word} " for word in ("all", "about", topic.name))
        if context.attempt == 1:
            raise RuntimeError("the model went away")
        return Text(text=whole)


@asynccontextmanager
async def writer(url: str) -> AsyncIterator[Wiring]:
    """A walker of the writer."""
    async with wired(url, name="writer") as wiring:
        async with walker_ports(wiring, url, ack_wait_s=60.0, exclusive=True, on_lost=lambda: None) as ports:
            walker = Walker([define(Writer)], ports, options=WalkerOptions(strict=True))
            work = asyncio.create_task(walker.run())
            try:
                yield wiring
            finally:
                await walker.stop()
                await work


async def start(wiring: Wiring) -> None:
    payload = StartPayload(event="Topic", body=msgspec.Raw(b'{"name":"spring"}'))
    command = Command(
        id="start", verb="start", issued_at=wiring.clock.now(), actor="t",
        payload=msgspec.Raw(msgspec.json.encode(payload)),
    )  # fmt: skip
    subject = command_subject(KEY, "start", issuer="cli")
    await wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)


@pytest.fixture
async def folder(postgres_template: Path) -> AsyncIterator[Path]:
    """A data directory for the commands, which find NATS elsewhere."""
    async with directory_for_tests(postgres_template) as directory:
        yield directory.path


async def waybook(url: str, folder: Path, *arguments: str) -> str:
    """What a command prints, in a process of its own."""
    environment = {**os.environ, "WAYBOOK_NATS_URL": url, "WAYBOOK_DATA_DIR": str(folder), "WAYBOOK_TENANT": "main"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, *arguments, "--agent", "writer",
        env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        output, errors = await asyncio.wait_for(process.communicate(), WITHIN_S)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode == 0, (output, errors)
    return output.decode()


async def test_a_run_is_watched_from_another_process(clean_nats: NatsUnderTest, folder: Path) -> None:
    """The first attempt's pieces, then behind their position those of the second; restarted, the run shows anew."""
    url = clean_nats.url
    await ensure_topology(url)
    async with writer(url) as wiring:
        await start(wiring)
        first = []
        async with asyncio.timeout(WITHIN_S):
            async for shown in watch(url, KEY):
                first.append(shown)
                if len(first) == 4:
                    break
        assert [(s.attempt, s.offset) for s in first] == [(1, n) for n in range(4)]
        following = asyncio.create_task(
            waybook(url, folder, "watch", KEY.run, "--after", str(first[-1].position), "--json")
        )
        assert "is tried again" in await waybook(url, folder, "retry", KEY.run)
        second = [json.loads(line) for line in (await following).splitlines()]
        assert [(s["attempt"], s["offset"], s["event"]) for s in second] == [
            (2, 0, "Progress"), *((2, n, "TextChunk") for n in range(1, 4)),
        ]  # fmt: skip
        whole = await waybook(url, folder, "watch", KEY.run)
        assert whole.splitlines() == [
            "write: thinking 1 2",
            "write: all about spring ",
            "write (attempt 2): thinking 1 2",
            "write (attempt 2): all about spring ",
        ]


async def test_a_failed_run_is_restarted_at_the_command_line(clean_nats: NatsUnderTest, folder: Path) -> None:
    """It walks from its start event again, in a walk of its own."""
    url = clean_nats.url
    await ensure_topology(url)
    async with writer(url) as wiring:
        await start(wiring)
        async with asyncio.timeout(WITHIN_S):
            async for shown in watch(url, KEY):
                if shown.offset == 3:
                    break
        assert "from its beginning" in await waybook(url, folder, "restart", KEY.run, "--reason", "once more")
        told = json.loads(await waybook(url, folder, "show", KEY.run, "--json"))
        (walk,) = [e for e in told if e["type"] == "WalkStarted"]
        assert (walk["data"]["n"], walk["data"]["reason"]) == (2, "once more")

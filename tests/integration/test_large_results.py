"""Steps, starts and answers that hold more than a commit takes."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.integration.shell import Shell

from waybook.engine.ports import Draft
from waybook.events.codec import Codec, commit_headers, commit_id
from waybook.events.commit import Commit
from waybook.events.engine import EventPublished
from waybook.events.subjects import RunKey, state_subject
from waybook.events.subscribe import subscribe
from waybook.services.bootstrap.topology import ensure_topology
from waybook.services.bootstrap.wiring import wired
from waybook.testing.servers import NatsUnderTest, directory_for_tests

AGENTS = """
from waybook.agents import Agent, AgentRequest, AgentResponse, Event, FixedList, StartEvent, StopEvent, delegate, step


class Ask(StartEvent, frozen=True, kw_only=True):
    size: int


class Page(Event, frozen=True, kw_only=True):
    text: str


class Read(StopEvent, frozen=True, kw_only=True):
    sizes: dict[str, int]
    text: str


class Copy(StartEvent, frozen=True, kw_only=True):
    text: str


class Copied(StopEvent, frozen=True, kw_only=True):
    text: str


class Copier(Agent):
    @step
    async def copy(self, asked: Copy) -> Copied:
        return Copied(text=asked.text + "!")


class Reader(Agent):
    @step
    async def pages(self, ask: Ask) -> list[Page]:
        return [Page(text=str(i) * ask.size) for i in range(6)]

    @step
    async def hand_over(self, pages: FixedList(Page, 6)) -> AgentRequest:
        return delegate("copier", Copy(text="".join(page.text for page in pages)), timeout_s=60)

    @step
    async def end(self, pages: FixedList(Page, 6), answer: AgentResponse) -> Read:
        return Read(sizes={page.text[0]: len(page.text) for page in pages}, text=answer.text)
"""


@pytest.fixture
def shell(postgres_template: Path) -> Iterator[Shell]:
    with asyncio.Runner() as runner:
        directory = directory_for_tests(postgres_template)
        try:
            yield Shell(runner.run(directory.__aenter__()))
        finally:
            runner.run(directory.__aexit__(None, None, None))


def test_results_of_half_a_megabyte_pass_through_steps_and_agents(shell: Shell, tmp_path: Path) -> None:
    """A list, a request to another agent and its answer; `show` reads the history whole in a new process."""
    (tmp_path / "reader.py").write_text(AGENTS)
    reader = f"{tmp_path / 'reader.py'}:Reader"
    told = json.loads(
        shell.run("start", reader, "--run", "r1", "--data", '{"size": 80000}', "--json",
                  WAYBOOK_AGENTS=f"{tmp_path / 'reader.py'}:Copier")
    )  # fmt: skip
    assert told["result"]["sizes"] == {str(i): 80_000 for i in range(6)}
    assert told["result"]["text"] == "".join(str(i) * 80_000 for i in range(6)) + "!"
    shown = json.loads(shell.run("show", "r1", "--agent", "reader", "--json"))
    pages = [e for e in shown if e["type"] == "EventPublished" and e["data"]["event"] == "Page"]
    assert [len(page["data"]["payload"]["text"]) for page in pages] == [80_000] * 6


async def test_a_service_that_follows_the_log_sees_large_fields_whole(clean_nats: NatsUnderTest) -> None:
    """The library fetches them from the object bucket; the stored message holds a reference."""
    await ensure_topology(clean_nats.url)
    subject = state_subject(RunKey("t", "reader", "r1"))
    body = msgspec.Raw(msgspec.json.encode({"text": "x" * 600_000}))
    commit = Commit(
        version=1,
        walk=1,
        at=1,
        actor="a",
        definition="d",
        events=(EventPublished(event="Page", schema=1, payload=body),),
    )
    async with wired(clean_nats.url, name="test") as wiring:
        payload = await wiring.state.fitting(subject, Codec().encode(commit, subject))
        identity = commit_id(subject, 0, payload)
        await wiring.state.append(Draft(subject, 0, payload, commit_headers(commit, commit_id=identity), identity))
    assert len(payload) < 1_000
    items = [item async for item in subscribe(clean_nats.url, types={"Page"}, follow=False)]
    assert [item.commit for item in items] == [commit]

"""A side effect that nobody knows the outcome of, at the command line: listed, explained, settled, undone."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.effects.http_service import HttpService, http_service
from tests.integration.shell import Shell, quick_up

AGENT = '''
from waybook.agents import Agent, Effects, StartEvent, StopEvent, step


class Wanted(StartEvent, frozen=True, kw_only=True):
    """A ticket is wanted."""


class Opened(StopEvent, frozen=True, kw_only=True):
    """It is there."""


class Tickets(Agent):
    """Opens one ticket, and in its first attempt fails after that."""

    name = "tickets"

    @step
    async def open(self, wanted: Wanted, effects: Effects) -> Opened:
        await effects.run("ticket", {"path": "/tickets", "json": {"text": "hello"}}, key="only")
        return Opened()
'''


@pytest.fixture
def service() -> Iterator[HttpService]:
    """A service on a loop of its own, since commands run in this one's thread."""
    running = HttpService()
    ready, end = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with http_service(running):
            ready.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    yield running
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()


@pytest.fixture
def shell(
    postgres_template: Path, service: HttpService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    """`waybook up` with an agent of our own, and the adapter of its side effect in the file."""
    agent, config = tmp_path / "tickets.py", tmp_path / "waybook.toml"
    agent.write_text(AGENT)
    config.write_text(
        f'agents = ["{agent}:Tickets"]\n[effects.ticket]\nadapter = "http"\nbase_url = "{service.url}"\n'
        'undo_path = "/tickets/{key}"\n'
    )
    monkeypatch.setenv("WAYBOOK_CONFIG", str(config))
    with quick_up(postgres_template) as shell:
        yield shell


def test_an_unknown_outcome_is_listed_explained_and_settled(shell: Shell, service: HttpService, tmp_path: Path) -> None:
    """The answer was lost and the service cannot be asked: a person says, once, and the run goes on."""
    service.fault = "drop_after"
    told = json.loads(shell.run("start", f"{tmp_path / 'tickets.py'}:Tickets", "--run", "r1", "--json"))
    assert (told["state"], told["hold"]["kind"] if isinstance(told["hold"], dict) else told["hold"]) == (
        "running", "reconciling",
    )  # fmt: skip
    (row,) = shell.json("operations", "--open")
    assert (row["run"], row["operation"], row["status"]) == ("r1", "open/ticket/only/1", "unknown")
    assert row["operation"] in shell.json("why", "r1", "--agent", "tickets")["next_move"]
    shell.run("settle", "r1", "ticket", "--agent", "tickets", code=2)
    settled = shell.json(
        "settle", "r1", "ticket", "--arrived", "--reason", "I see it", "--as", "ann", "--agent", "tickets"
    )
    assert (settled["ok"], settled["operation"]) == (True, row["operation"])
    (row,) = shell.json("operations", "r1", "--agent", "tickets")
    assert (row["status"], row["settled_by"], row["evidence"]) == (
        "succeeded", "person", {"person": "ann", "reason": "I see it"},
    )  # fmt: skip
    again = json.loads(shell.run(
        "settle", "r1", row["operation"], "--not-arrived", "--agent", "tickets", "--json", code=1
    ))  # fmt: skip
    assert again["reason"] == "already_settled"
    assert "ticket" in shell.run("operations") and len(service.kept) == 1
    ended = json.loads(shell.run("compensate", "r1", "--agent", "tickets", "--json", code=1))
    assert ended["reason"] in ("terminal", "under_way")

"""What the NATS adapter tells of its groups, and what JetStream tells of what waits."""

import asyncio

import pytest
from prometheus_client.metrics_core import Metric
from tests.contract.ports.adapters_under_test import ACK_WAIT_S, STREAM, draft, installed

from waybook.adapters.metrics import backlog
from waybook.adapters.metrics.backlog import Backlog
from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.notes import NatsNotes
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.engine.hooks import Details, GroupSent
from waybook.engine.ports import CTL_ANY, NEW_ANY, AppendConflict
from waybook.testing.servers import NatsUnderTest


async def test_a_commit_alone_is_a_group_of_one_and_many_together_are_few_groups(connection: Connection) -> None:
    """Sizes add up to the commits that were sent, those that met a conflict included."""
    told: list[Details] = []
    log = NatsStateLog(connection, STREAM, hook=told.append)
    await log.append(draft("alone", 0))
    assert told == [GroupSent(1)]
    told.clear()
    await asyncio.gather(*(log.append(draft(f"r{number}", 0)) for number in range(50)))
    groups = [details for details in told if isinstance(details, GroupSent)]
    assert sum(group.size for group in groups) == 50 and len(groups) < 10
    told.clear()
    with pytest.raises(AppendConflict):
        await log.append(draft("alone", 0, "another"))
    assert told == [GroupSent(1)]


async def test_the_backlog_is_that_of_the_queue(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting, held, and buried commands, by consumer, as the server counts them."""
    monkeypatch.setattr(backlog, "KEEP_S", 0.0)
    queue = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S * 60)
    await queue.ensure_consumers((NEW_ANY, CTL_ANY))
    for number in range(5):
        await queue.publish(f"cmd.new.any.cli.test.inbox.r{number}.start", b"{}", command=f"c{number}")
    source = Backlog(connection)
    expected: dict[tuple[str, ...], float] = {
        ("waybook_jetstream_answers",): 1,
        ("waybook_commands_waiting", "ctl_any"): 0,
        ("waybook_commands_waiting", "new_any"): 5,
        ("waybook_commands_waiting", "step_any"): 0,
        ("waybook_commands_held", "ctl_any"): 0,
        ("waybook_commands_held", "step_any"): 0,
        ("waybook_commands_held", "new_any"): 0,
        ("waybook_dead_letters_stored",): 0,
    }
    await _until_told(source, expected)
    taken = await queue.pull("new_any", 2, 1.0)
    await NatsNotes(connection).bury(taken[0].subject, taken[0].payload, {})
    expected["waybook_commands_waiting", "new_any"] = 3
    expected["waybook_commands_held", "new_any"] = 2
    expected["waybook_dead_letters_stored",] = 1
    await _until_told(source, expected)


async def test_many_readers_ask_the_server_once(connection: Connection) -> None:
    """What was read a moment ago counts as now."""
    queue = NatsCommandQueue(connection, ack_wait_s=ACK_WAIT_S * 60)
    await queue.ensure_consumers((NEW_ANY,))
    source = Backlog(connection)
    first, *others = await asyncio.gather(*(source.families() for _ in range(5)))
    await queue.publish("cmd.new.any.cli.test.inbox.r.start", b"{}", command="c")
    others.append(await source.families())
    assert all(_told(told) == _told(first) for told in others)


async def test_without_an_answer_nothing_is_told_but_that(own_nats: NatsUnderTest) -> None:
    """A number of before the loss would look like one of now."""
    async with installed(own_nats.url) as connection:
        source = Backlog(connection)
        await own_nats.kill()
        assert _told(await source.families()) == {("waybook_jetstream_answers",): 0}


async def _until_told(source: Backlog, expected: dict[tuple[str, ...], float]) -> None:
    """The server counts what waits a moment after it stored it."""
    told: dict[tuple[str, ...], float] = {}
    for _ in range(200):
        told = _told(await source.families())
        if told == expected:
            return
        await asyncio.sleep(0.02)
    assert told == expected


def _told(families: object) -> dict[tuple[str, ...], float]:
    assert isinstance(families, list) and all(isinstance(family, Metric) for family in families)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}

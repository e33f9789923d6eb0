"""How a soak goes: runs are started while workers die, then all of them are waited for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from tests.crash.mail_crew import BACKLOG, Crew, Found, look
from tests.crash.walks import count, counts

from waybook.agents.definition import AgentDefinition
from waybook.events.subjects import RunKey, state_stream, state_subject
from waybook.services.bootstrap.installation import Installation
from waybook.testing.servers import NatsUnderTest, nats_for_tests

AT_ONCE = 50


@asynccontextmanager
async def soaked_nats() -> AsyncIterator[NatsUnderTest]:
    """A server that does not wait for the disk: in a soak workers die, and the machine does not."""
    async with nats_for_tests(sync_always=False) as server:
        yield server


async def start_among_deaths(
    installation: Installation,
    crew: Crew,
    numbers: Sequence[int],
    begin: Callable[[Installation, int], Awaitable[RunKey]],
) -> list[RunKey]:
    """Begins all of them, and meddles until few commands are left, and somebody was killed."""
    keys: list[RunKey] = []
    meddling = asyncio.create_task(crew.meddle())
    try:
        while len(keys) < len(numbers) or await left(installation) > BACKLOG // 10 or not crew.did["killed"]:
            assert not meddling.done(), "the crew broke"
            if len(keys) < len(numbers) and await left(installation) < BACKLOG:
                more = numbers[len(keys) : len(keys) + AT_ONCE]
                keys += await asyncio.gather(*(begin(installation, number) for number in more))
            await asyncio.sleep(0.2)
    finally:
        meddling.cancel()
        with suppress(asyncio.CancelledError):
            await meddling
    return keys


async def left(installation: Installation) -> int:
    """Commands that are not decided yet."""
    return await count(installation.wiring.connection, "COMMANDS", "cmd.>")


async def until_over(
    installation: Installation,
    crew: Crew,
    keys: Sequence[RunKey],
    agent: AgentDefinition,
    is_over: Callable[[Found], bool],
    is_settled: Callable[[Mapping[RunKey, Found]], bool] = lambda found: True,
    found: dict[RunKey, Found] | None = None,
) -> dict[RunKey, Found]:
    """Waits until every run is over, nothing is left to do, and all of them together are settled.

    `found`: what was seen of some of them before. A history is read again when it has grown since.
    """
    found = {} if found is None else found
    while True:
        crew.check()
        is_quiet = not await left(installation)
        found |= await look(installation, await grown(installation, keys, found, agent), agent)
        # one run may look as if it were over between two questions to the other side, so all have to be at once
        if is_quiet and len(found) == len(keys) and all(map(is_over, found.values())) and is_settled(found):
            return found
        await asyncio.sleep(0.5)


async def grown(
    installation: Installation, keys: Iterable[RunKey], found: Mapping[RunKey, Found], agent: AgentDefinition
) -> list[RunKey]:
    """Runs whose history is longer than what was found of it."""
    subjects = f"state.*.*.*.{agent.engine.agent}.*"
    stored = await counts(installation.wiring.connection, state_stream(), subjects)
    known = {key: len(one.history) for key, one in found.items()}
    return [key for key in keys if stored.get(state_subject(key), 0) > known.get(key, 0)]

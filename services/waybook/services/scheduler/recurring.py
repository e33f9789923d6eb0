"""Recurring runs: gives the starts that schedules ask for. Nothing is kept: a run's id is made of its time."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.agents.schedule import MOST_OCCURRENCES, Schedule, ScheduledEvent
from waybook.engine.ports import Clock
from waybook.events.command import StartPayload
from waybook.events.subjects import RunKey, digest_token
from waybook.services.scheduler.doing import Doer
from waybook.services.scheduler.effects import Give

log = logging.getLogger(__name__)

GRACE_MS = 60_000
"""A time is missed when nobody looked within so long after it."""


class Due(msgspec.Struct, frozen=True):
    """Times of a schedule (ms UTC) at which a run begins now, and those at which none ever will.

    `until`: to where was looked; the next look goes on behind it.
    """

    begin: tuple[int, ...]
    dropped: tuple[int, ...]
    until: int


def due(schedule: Schedule, after: int, now: int) -> Due:
    """What is due of the times above `after`, by the schedule's rule for those that were missed. Pure."""
    reach = max(after, now - look_back_ms(schedule))
    times = schedule.between(reach, now)
    in_time = tuple(at for at in times if now - at <= GRACE_MS)
    late = tuple(at for at in times if GRACE_MS < now - at <= schedule.catch_up_s * 1000)
    begin = in_time
    if schedule.missed == "all":
        begin = (*late, *in_time)
    elif schedule.missed == "latest":
        begin = in_time or late[-1:]
    begun = frozenset(begin)
    too_old = schedule.between(after, reach) if reach > after else []
    dropped = (*too_old, *(at for at in times if at not in begun))
    return Due(begin, dropped, now if len(times) < MOST_OCCURRENCES else times[-1])


def look_back_ms(schedule: Schedule) -> int:
    """How far a scheduler that begins looks back."""
    return GRACE_MS if schedule.missed == "skip" else max(GRACE_MS, round(schedule.catch_up_s * 1000))


class Planned(msgspec.Struct, frozen=True):
    """A schedule of an agent in a tenant."""

    tenant: str
    definition: AgentDefinition
    schedule: Schedule

    def run(self, at: int) -> RunKey:
        """The run of one time."""
        moment = datetime.fromtimestamp(at / 1000, UTC)
        return RunKey(self.tenant, self.definition.engine.agent, f"{self.schedule.name}-{moment:%Y%m%dt%H%M%S}z")

    def start(self, at: int) -> Give:
        """The start of that run; the same time is the same command."""
        event = self.schedule.start
        if isinstance(event, ScheduledEvent):
            event = msgspec.structs.replace(event, scheduled_at=at)
        output = self.definition.output(event)
        key = self.run(at)
        payload = StartPayload(
            event=output.event,
            schema=output.schema,
            body=output.payload,
            thread=digest_token("schedule", key.agent, self.schedule.name),
            configuration=self.schedule.configuration,
        )
        return Give(f"{key}/start", key, "start", payload)


def planned(tenant: str, definitions: Sequence[AgentDefinition]) -> tuple[Planned, ...]:
    """The schedules of these agents."""
    return tuple(Planned(tenant, one, schedule) for one in definitions for schedule in one.agent.schedules)


class Recurring:
    """One of the scheduler's parts. Any number may work side by side: they give the same commands."""

    name = "recurring"

    def __init__(self, plans: Sequence[Planned], doer: Doer, clock: Clock) -> None:
        self._plans = plans
        self._doer = doer
        self._clock = clock
        self._seen: list[int | None] = [None] * len(plans)
        self.busy = False

    async def step(self, pull_s: float) -> None:
        """Gives the starts that are due, then waits for the next time or `pull_s`. Raises PortError; then again."""
        self.busy = True
        try:
            for number, plan in enumerate(self._plans):
                await self._look(number, plan)
        finally:
            self.busy = False
        await asyncio.sleep(self._pause_s(pull_s))

    async def _look(self, number: int, plan: Planned) -> None:
        now = self._clock.now()
        seen = self._seen[number]
        if seen is not None and seen > now:
            seen = None  # the clock was set back: what had its run is given again, and changes nothing
        found = due(plan.schedule, seen if seen is not None else now - look_back_ms(plan.schedule), now)
        await self._doer.give([plan.start(at) for at in found.begin])
        self._seen[number] = found.until
        extra = {"agent": plan.definition.engine.agent, "schedule": plan.schedule.name}
        if found.dropped and seen is not None:
            extra |= {"action": "occurrences_dropped", "count": str(len(found.dropped))}
            log.warning("times of a schedule were missed and begin no run", extra=extra)
        for at in found.begin:
            log.info("a recurring run was started", extra={"action": "recurring_started", "at": at, **extra})

    def _pause_s(self, most: float) -> float:
        now = self._clock.now()
        following = [at for plan in self._plans if (at := plan.schedule.next_after(now)) is not None]
        return max(0.001, min([most, *((at - now) / 1000 for at in following)]))

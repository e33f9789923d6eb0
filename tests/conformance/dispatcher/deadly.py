"""A process full of walkers that kills itself with SIGKILL where a dispatcher case arms a crash."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from tests.conformance.cases import Case
from tests.conformance.dispatcher.bodies import Bodies, attempt_now
from tests.conformance.dispatcher.publish import point_of
from tests.conformance.dispatcher.traffic import CrashPoint, DispatcherTraffic
from tests.conformance.dispatcher.workflow import Built, build
from tests.conformance.dispatcher.world import workflows
from tests.crash.worker import consumers

from waybook.agents.definition import AgentDefinition, define
from waybook.engine.ports import Draft, StateLog
from waybook.events.codec import Codec
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.wiring import walker_ports, wired
from waybook.services.walker.walker import Walker, WalkerOptions
from waybook.testing.faults import kill


class Deadly(msgspec.Struct, frozen=True):
    """What such a process needs: it takes the commands of one tenant. `crash`: as in the case, None: it lives."""

    url: str
    tenant: str
    case: Case
    journal: Path
    walkers: int
    seed: int
    ack_wait_s: float
    crash: dict[str, Any] | None


class MortalLog:
    """STATE, where this process dies at the commit that a crash point names."""

    def __init__(self, inner: StateLog, traffic: DispatcherTraffic) -> None:
        self._inner = inner
        self._traffic = traffic
        self.stream = inner.stream
        self.history = inner.history
        self.tail = inner.tail

    async def append(self, draft: Draft, *, tries: int | None = None) -> int:
        crash = await self._traffic.before_append(draft)
        if crash is None:
            sequence = await self._inner.append(draft, tries=tries)
            self._traffic.appended(draft)
            return sequence
        sending = asyncio.ensure_future(self._inner.append(draft, tries=tries))
        if crash.stored:
            await sending
        else:
            await asyncio.sleep(0.001)  # the bytes are on their way, and may arrive or not
        kill()
        raise AssertionError("unreachable")


def built(case: Case) -> tuple[dict[str, Built], dict[str, AgentDefinition]]:
    """The agents of a case and their definitions, by name."""
    foreign: dict[str, type] = {}
    agents: dict[str, Built] = {}
    for name, flow in workflows(case).items():
        agents[name] = build(flow, attempt_now, foreign)
        foreign |= {n: c for n, c in agents[name].classes.items() if flow.events[n].get("start")}
    return agents, {name: define(one.agent) for name, one in agents.items()}


class _Counted(Bodies):
    """Bodies that leave a line in the journal before they run, and die where the case says."""

    def __init__(self, deadly: Deadly, chance: Random) -> None:
        super().__init__(chance)
        self._journal = os.open(deadly.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._point = point_of(deadly.crash) if deadly.crash is not None else CrashPoint("never")
        self.crash = self._begins

    def _begins(self, run: RunKey, step: str) -> bool:
        os.write(self._journal, f"{run.run} {step}\n".encode())
        if self._point.point != "during_step" or step != self._point.step:
            return False
        self._point.seen += 1
        return self._point.seen == self._point.execution


def counted(journal: Path) -> Counter[tuple[str, str]]:
    """How often the bodies of a run's steps began, by run and step."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return Counter((run, step) for run, step in (line.split() for line in lines))


def work(deadly: Deadly) -> None:
    """Main function of the process: walks until it kills itself or is killed."""
    logging.disable(logging.CRITICAL)
    asyncio.run(_work(deadly))


async def _work(deadly: Deadly) -> None:
    chance = Random(f"{deadly.seed} {deadly.crash is None}")
    bodies = _Counted(deadly, chance)
    traffic = DispatcherTraffic(Codec(), _NoClock())
    traffic.prepare(chance)
    if deadly.crash is not None and deadly.crash["point"] != "during_step":
        traffic.point = point_of(deadly.crash)
    _, definitions = built(deadly.case)
    agents = [
        msgspec.structs.replace(d, bodies={s: bodies.wrapped(b, lambda: True, kill) for s, b in d.bodies.items()})
        for d in definitions.values()
    ]
    ctl, new, offered = consumers(deadly.tenant)
    async with wired(deadly.url, name="deadly", ack_wait_s=deadly.ack_wait_s) as wiring:
        async with walker_ports(
            wiring, deadly.url, ack_wait_s=deadly.ack_wait_s, exclusive=False, consumers=(ctl, new, offered),
            on_lost=lambda: lost(walkers),
        ) as ports:  # fmt: skip
            mortal = msgspec.structs.replace(ports, state=MortalLog(ports.state, traffic))
            walkers = [
                Walker(agents, mortal, options=WalkerOptions(
                    name=f"deadly-{number}", strict=True, pull_s=0.25, slots=chance.randint(1, 3),
                    ctl_slots=chance.randint(1, 3), new_consumer=new.name, ctl_consumer=ctl.name, step_consumer=offered.name,
                ))
                for number in range(deadly.walkers)
            ]  # fmt: skip
            await asyncio.gather(*(walker.run() for walker in walkers))


def lost(walkers: Sequence[Walker]) -> None:
    """All claims of the process are lost."""
    for walker in walkers:
        walker.claims_lost()


class _NoClock:
    def now(self) -> int:
        return 0

"""A walker in a process of its own, to be killed, stopped and continued."""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from tests.crash.asking import Asking
from tests.crash.five_steps import Deadly, FiveSteps, Journal, SixSteps
from tests.crash.sending import Outside, Sending, adapters

from waybook.agents.definition import AgentDefinition, define
from waybook.agents.effects import EffectAdapter
from waybook.engine.ports import ConsumerSpec
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings
from waybook.services.bootstrap.wiring import walker_ports, wired
from waybook.services.walker.walker import Walker, WalkerOptions
from waybook.testing.faults import Action, Boundary, Faults, FaultyEffect, faulty_ports, kill, pause

Deed: TypeAlias = Literal["kill", "pause"]
DEEDS: Mapping[Deed, Action] = {"kill": kill, "pause": pause}

INBOX, INBOX_PROVIDES = mail_agent(Settings())
Version: TypeAlias = Literal["five", "six", "inbox", "asking", "sending"]
AGENTS: Mapping[Version, AgentDefinition] = {
    "five": define(FiveSteps), "six": define(SixSteps), "inbox": INBOX, "asking": define(Asking),
    "sending": define(Sending),
}  # fmt: skip
"""An agent whose steps do nothing, another version of it, the built-in one, one that waits for a person,
and one that sends something."""


class Fault(msgspec.Struct, frozen=True):
    """What this process does to itself, and where."""

    boundary: Boundary
    deed: Deed = "kill"
    nth: int = 1
    where: str = "*"


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A worker takes the commands of one tenant only, so that many cases share a server. Times in seconds."""

    url: str
    tenant: str
    journal: Path
    fault: Fault | None = None
    gates: Path | None = None
    ack_wait_s: float = 1.0
    log: Path | None = None
    slots: int = 64
    exclusive: bool = False
    version: Version = "five"
    deadly: Deadly | None = None
    outside: Outside | None = None


def consumers(tenant: str) -> tuple[ConsumerSpec, ConsumerSpec, ConsumerSpec]:
    """The consumers of one tenant's commands: decisions, starts, offered steps."""
    return (
        ConsumerSpec(f"ctl_{tenant}", f"cmd.ctl.any.*.{tenant}.>"),
        ConsumerSpec(f"new_{tenant}", f"cmd.new.any.*.{tenant}.>"),
        ConsumerSpec(f"step_{tenant}", f"cmd.step.any.*.{tenant}.>"),
    )


def lane(tenant: str, version: Version) -> ConsumerSpec:
    """The consumer of one tenant's commands in the lane of a definition."""
    return ConsumerSpec(f"lane_{tenant}_{version}", f"cmd.*.{AGENTS[version].engine.hash}.*.{tenant}.>")


def work(settings: WorkerSettings) -> None:
    """Main function of the process: walks until SIGTERM. Ends with code 1 on what the walker raises."""
    if settings.log is not None:
        logging.basicConfig(filename=settings.log, level=logging.INFO, format="%(process)d %(action)s %(message)s")
        logging.getLogger().handlers[0].addFilter(_with_action)
    sys.exit(asyncio.run(_work(settings)))


async def _work(settings: WorkerSettings) -> int:
    faults = Faults()
    if (fault := settings.fault) is not None:
        faults.arm(fault.boundary, DEEDS[fault.deed], nth=fault.nth, where=fault.where)
    journal = Journal(settings.journal, faults, settings.gates, settings.deadly)
    agent = AGENTS[settings.version]
    ctl, new, offered = consumers(settings.tenant)
    own = lane(settings.tenant, settings.version)
    options = WalkerOptions(
        strict=True, pull_s=0.25, slots=settings.slots, new_consumer=new.name, ctl_consumer=ctl.name,
        step_consumer=offered.name, lane_consumers=(own.name,), clock_margin_ms=100,
    )  # fmt: skip
    async with wired(settings.url, name="crash-worker", ack_wait_s=settings.ack_wait_s) as wiring:
        async with walker_ports(
            wiring, settings.url, ack_wait_s=settings.ack_wait_s, exclusive=settings.exclusive, consumers=(ctl, new, offered, own),
            on_lost=lambda: walker.claims_lost(),
        ) as ports:  # fmt: skip
            provides: dict[type, Any] = {**INBOX_PROVIDES, Journal: journal}
            effects = _effects(settings.outside, faults) if settings.outside is not None else {}
            walker = Walker([agent], faulty_ports(ports, faults), provides=provides, effects=effects, options=options)
            stopping = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
            running = asyncio.create_task(walker.run())
            stop = asyncio.create_task(stopping.wait())
            await asyncio.wait([running, stop], return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            await walker.stop()
            await running
    return 0


def _effects(outside: Outside, faults: Faults) -> Mapping[str, EffectAdapter]:
    return {name: FaultyEffect(name, adapter, faults) for name, adapter in adapters(outside).items()}


def _with_action(record: logging.LogRecord) -> bool:
    record.action = getattr(record, "action", "-")
    return True

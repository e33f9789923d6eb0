"""Runs of the mailing agent among workers that are killed and stopped, and what became of each."""

import asyncio
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.context import ForkServerProcess
from typing import cast

import msgspec
from aiosmtpd.smtp import SMTP, Envelope, Session
from tests.contract.effects.mail_server import MailServer
from tests.crash import forking
from tests.crash.mailing import MAILING, MailingSettings, work

from waybook.agents.definition import AgentDefinition
from waybook.engine.fold import fold_all
from waybook.engine.hold import Hold, hold
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Command, StartPayload
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey, command_subject
from waybook.services.bootstrap.installation import Installation
from waybook.testing.history import illegalities, read_history

TENANT = "main"
BACKLOG = 150
WORKERS = 3
FOR_A_PERSON = frozenset({"exhausted", "unknown_outcome", "disputed", "convicted"})
SIDE_BY_SIDE = 50
FAILURES = 3


class LossyMailServer(MailServer):
    """A mail server that loses `share` of its answers: half of them after it took the mail, the others before."""

    def __init__(self, lot: random.Random, share: float) -> None:
        super().__init__()
        self.share = share
        self._lot = lot
        self.lost: Counter[str] = Counter()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """See MailServer."""
        if self._lot.random() < self.share:
            self.fault = self._lot.choice(("drop_before", "drop_after"))
            self.lost["taken" if self.fault == "drop_after" else "not taken"] += 1
        return await super().handle_DATA(server, session, envelope)


class Crew:
    """Workers that are killed and stopped every few seconds, and replaced."""

    def __init__(
        self, settings: MailingSettings, lot: random.Random, work: Callable[[MailingSettings], None] = work
    ) -> None:
        self._work = work
        self._settings = settings
        self._lot = lot
        self._workers: list[ForkServerProcess] = []
        self.did: Counter[str] = Counter()

    def begin(self) -> None:
        """As many as there are to be."""
        while len(self._workers) < WORKERS:
            self._workers.append(forking.begin(self._work, self._settings))

    async def meddle(self) -> None:
        """Goes on until it is cancelled, and then leaves nobody stopped."""
        while True:
            await asyncio.sleep(self._lot.uniform(1.0, 4.0))
            await self._kill(self._lot.choice(self._workers))
            self.did["killed"] += 1
            await asyncio.sleep(self._lot.uniform(1.0, 4.0))
            await self._stop_for(self._lot.choice(self._workers), self._lot.uniform(0.5, 5.0))
            self.did["stopped"] += 1

    async def _kill(self, worker: ForkServerProcess) -> None:
        worker.kill()
        await asyncio.to_thread(worker.join, 10)
        self._workers.remove(worker)
        self.begin()

    async def _stop_for(self, worker: ForkServerProcess, seconds: float) -> None:
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(worker.pid, signal.SIGCONT)

    def check(self) -> None:
        """Nobody ended by itself."""
        codes = [worker.exitcode for worker in self._workers if worker.exitcode is not None]
        assert codes == [], f"workers ended by themselves with {codes}, see {self._settings.log}"

    def end(self) -> None:
        """Ends all of them."""
        for worker in self._workers:
            worker.kill()
            worker.join(10)


class Found(msgspec.Struct):
    """A run at its end: its history, folded, and what holds it."""

    history: list[Commit]
    run: Run
    held: Hold

    @property
    def is_over(self) -> bool:
        """Ended, or waiting for a person who is told for what."""
        by_itself = self.held.kind == "retry" or self.held.until is not None
        return (self.run.ended and self.held.kind == "none") or (self.held.reason in FOR_A_PERSON and not by_itself)

    @property
    def ends_as(self) -> str:
        return str(self.run.outcome) if self.held.kind == "none" else f"held: {self.held.reason}"


class Figures(msgspec.Struct):
    """What a soak came to. `attempts` by step, of which some `failed` and some `lost` their worker.

    `expected` are the runs that should be out of attempts, from how often each step's attempts failed or were lost.
    """

    runs: int
    seconds: float
    ends: dict[str, int]
    crew: dict[str, int]
    answers_lost: dict[str, int]
    mails: int
    twice: int
    attempts: dict[str, int]
    failed: dict[str, int]
    lost: dict[str, int]
    exhausted: int
    expected: float
    unknown: int

    @property
    def most_exhausted(self) -> float:
        """What chance makes unlikely: four standard deviations above."""
        return self.expected + 4 * math.sqrt(self.expected) + 2

    def text(self) -> str:
        """For the terminal."""
        return "\n".join(
            f"  {name}: {value:.1f}" if isinstance(value, float) else f"  {name}: {value}"
            for name, value in msgspec.structs.asdict(self).items()
        )


async def start(installation: Installation, number: int) -> RunKey:
    """One run of the agent."""
    key = RunKey(TENANT, "mailing", f"r{number}")
    payload = StartPayload(event="Asked", body=msgspec.Raw(msgspec.json.encode({"number": number})), id=key.run)
    command = Command(
        id=f"start-{key}", verb="start", issued_at=time.time_ns() // 1_000_000, actor="soak",
        payload=msgspec.Raw(msgspec.json.encode(payload)),
    )  # fmt: skip
    subject = command_subject(key, "start", issuer="cli")
    await installation.wiring.commands.publish(subject, msgspec.json.encode(command), command=command.id)
    return key


async def look(
    installation: Installation, keys: Iterable[RunKey], agent: AgentDefinition = MAILING
) -> dict[RunKey, Found]:
    """The runs as STATE has them; those that have not begun are left out."""
    turn, codec = asyncio.Semaphore(SIDE_BY_SIDE), Codec()

    async def one(key: RunKey) -> tuple[RunKey, Found] | None:
        async with turn:
            history = await read_history(installation.wiring.state, key, codec)
        run = fold_all(None, [(commit, n, "") for n, commit in enumerate(history, 1)], key=key)
        return (key, Found(history, run, hold(agent.engine, run))) if run is not None else None

    return dict(filter(None, await asyncio.gather(*(one(key) for key in keys))))


def figures(found: Mapping[RunKey, Found], mails: LossyMailServer, crew: Crew, seconds: float) -> Figures:
    """Counts."""
    began, failed, lost = (Counter[str]() for _ in range(3))
    for one in found.values():
        for action in one.run.actions.values():
            began[action.step] += 1
            failed[action.step] += action.status == "failed"
            lost[action.step] += action.status == "abandoned"
    return Figures(
        runs=len(found),
        seconds=seconds,
        ends=dict(Counter(one.ends_as for one in found.values())),
        crew=dict(crew.did),
        answers_lost=dict(mails.lost),
        mails=len(mails.taken),
        twice=sum(n > 1 for n in Counter(mails.message_ids).values()),
        attempts=dict(began),
        failed=dict(failed),
        lost=dict(lost),
        exhausted=sum(one.held.reason in ("exhausted", "convicted") for one in found.values()),
        expected=len(found) * sum(((failed[step] + lost[step]) / began[step]) ** FAILURES for step in began),
        unknown=sum(one.held.reason == "unknown_outcome" for one in found.values()),
    )


def wrongs(found: Mapping[RunKey, Found], mails: LossyMailServer) -> list[str]:
    """All that is wrong with what is left, one sentence each."""
    texts = [f"{id} was sent {n} times" for id, n in Counter(mails.message_ids).items() if n > 1]
    to = Counter(cast(str, mail["To"]) for mail in mails.taken)
    texts += [f"{who} got {n} mails" for who, n in to.items() if n > 1]
    for key, one in found.items():
        texts += [f"{key}: {text}" for text in illegalities(MAILING.engine.table, one.history, ended=one.run.ended)]
        got = to[f"to{key.run.removeprefix('r')}@example.org"]
        if one.run.outcome == "completed" and got != 1:
            texts.append(f"{key} is completed, and {got} mails arrived")
        if one.held.reason == "exhausted" and got:
            texts.append(f"{key} is out of attempts, and its mail arrived")
        unknown = [name for name, o in one.run.operations.items() if o.outcome in (None, "unknown")]
        if unknown and one.held.reason != "unknown_outcome":
            texts.append(f"{key}: nobody knows of {unknown}, and nobody is told")
        if not one.is_over:
            texts.append(f"{key} is {one.run.state} and neither ended nor held for a person: {one.held}")
    return texts

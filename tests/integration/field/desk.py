"""A whole installation that tests feed mails into: real servers, a real walker, the projector, the rules models.

It lives on an event loop in a thread of its own, so that tests stay plain functions and leases are kept between them.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import msgspec
from tests.integration.projections.installation import until

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.adapters.models.rules import RulesModel
from waybook.agents.definition import AgentDefinition, define
from waybook.agents.model import ModelAnswer, ModelRequest
from waybook.engine.ports import Clock
from waybook.events.codec import Codec
from waybook.events.subjects import RunKey
from waybook.inbox.agent import Inbox
from waybook.inbox.brakes import Brakes, StandingBrakes
from waybook.inbox.events import MailReceived
from waybook.inbox.intake.sources import Skipped, read_sources
from waybook.inbox.knowledge import CombinedKnowledge, Contact, Knowledge, MemoryKnowledge
from waybook.inbox.route import RouteSettings
from waybook.inbox.scan.scan import ScanSettings
from waybook.inbox.settings import InboxSettings, Models
from waybook.projections.errors import NoReadModels
from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.clock import SystemClock
from waybook.services.bootstrap.installation import Installation, owned, projecting, walking
from waybook.services.bootstrap.observing import Observing, observed
from waybook.services.bootstrap.settings import Settings
from waybook.services.commanding.client import CommandClient
from waybook.services.intake.starts import Starts, Submission
from waybook.services.reading.earlier_mails import EarlierMails
from waybook.services.reading.history import Entry, read_history

T = TypeVar("T")
PATIENCE_S = 60.0
OURS = "help@shop.example"
RECEIVER = "mx.shop.example"
ANA = Contact("c-ana", "Ana Alm", "Ana Alm, customer since 2019, lives in Elm Street 7")
STEPS = ["security_scan", "context_retrieval", "classify", "draft", "route"]


class Recording(RulesModel):
    """The rules, and what they were asked."""

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        return await super().ask(request)


class Walked(msgspec.Struct, kw_only=True):
    """A mail after its walk: its row in PostgreSQL, its attempts, its history, and what intake read."""

    run: str
    already: bool
    row: dict[str, Any]
    actions: list[dict[str, Any]]
    history: list[Entry]
    start: MailReceived
    asked: list[ModelRequest]

    @property
    def steps(self) -> list[str]:
        """Names of the steps that began."""
        return [action["step"] for action in self.actions]

    @property
    def findings(self) -> dict[str, str]:
        """What the scan found: the excerpt by name."""
        flags = self.row["security_flags"] or {}
        return {f["name"]: f["excerpt"] for f in flags.get("findings", ())}

    @property
    def scanned(self) -> str:
        """Everything that security_scan was given to read."""
        mail = self.start.mail
        return "\n".join([mail.subject, mail.text or "", mail.html or "", *mail.other_text])

    @property
    def context(self) -> dict[str, Any]:
        """The context that was retrieved."""
        return dict(self.outputs("context_retrieval")[0]["context"])

    @property
    def gate(self) -> str | None:
        """The gate that asked for a person."""
        gate = (self.row["agent_decision"] or {}).get("gate")
        return None if gate is None else str(gate)

    @property
    def remarks(self) -> list[str]:
        """What people are told of the mail."""
        return list(self.row["fields"].get("remarks", ()))

    def outputs(self, step: str) -> list[dict[str, Any]]:
        """Payloads of the events that a step returned."""
        return [o["payload"] for a in self.actions if a["step"] == step for o in a["output"] or ()]

    @property
    def model_input(self) -> str:
        """Every section of every request that a model got for this mail."""
        return "\n".join(section.text for request in self.asked for section in request.sections)


class Fed(msgspec.Struct):
    """What became of a batch: the mails in their order, and the files that were left out."""

    walked: list[Walked]
    skipped: list[Skipped]


class Desk:
    """Feeds mails and looks at what became of them. Every batch is a tenant of its own unless one is named."""

    def __init__(
        self,
        installation: Installation,
        models: ReadModels,
        observing: Observing,
        directory: DataDirectory,
        folder: Path,
    ) -> None:
        self.directory = directory
        self.installation = installation
        self.models = models
        self.observing = observing
        self.recording = Recording()
        self._folder = folder
        self._batches = count(1)
        self.loop = asyncio.get_running_loop()

    def now(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work` on the desk's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(3 * PATIENCE_S)

    def new_tenant(self) -> str:
        """A tenant that nobody has used."""
        return f"t{next(self._batches)}"

    def walk(self, *mails: bytes, suffix: str = "eml", tenant: str | None = None) -> Fed:
        """Takes mails in as files of a folder, and waits until each has ended or is held."""
        folder = self._folder / f"batch-{next(self._batches)}"
        folder.mkdir()
        for number, raw in enumerate(mails):
            (folder / f"{number:03}.{suffix}").write_bytes(raw)
        return self.now(self._walk(folder, tenant or self.new_tenant()))

    def one(self, mail: bytes, tenant: str | None = None) -> Walked:
        """The walk of a single mail."""
        fed = self.walk(mail, tenant=tenant)
        assert not fed.skipped, fed.skipped
        (walked,) = fed.walked
        return walked

    async def _walk(self, folder: Path, tenant: str) -> Fed:
        self.recording.asked.clear()
        submissions, skipped = await self.take_in(folder, tenant)
        runs = sorted({s.key.run for s in submissions})

        async def settled() -> bool:
            return await self.models.settled(runs, tenant=tenant) == len(runs)

        await until(settled, PATIENCE_S)
        return Fed([await self._look(s, tenant) for s in submissions], skipped)

    async def take_in(self, folder: Path, tenant: str) -> tuple[list[Submission], list[Skipped]]:
        """Publishes the starts of a folder's mails and waits for the answers."""
        starts = self.starts(tenant)
        found = [one async for one in starts.submit(read_sources([folder]))]
        assert await starts.until_answered(PATIENCE_S)
        return [s for s in found if isinstance(s, Submission)], [s for s in found if isinstance(s, Skipped)]

    def starts(self, tenant: str) -> Starts:
        """Intake for one tenant; to be used on the desk's loop."""
        wiring = self.installation.wiring
        return Starts(
            wiring.connection, wiring.commands, wiring.objects, wiring.clock,
            tenant=tenant, mailbox="inbox", actor="test", own_addresses=self.installation.settings.own_addresses,
        )  # fmt: skip

    async def _look(self, submission: Submission, tenant: str) -> Walked:
        run, answer = submission.key.run, submission.answer
        assert answer is not None and answer.ok, answer
        (row,) = await self.models.message(run, agent="inbox", tenant=tenant)
        key = RunKey(tenant, "inbox", run)
        history = (await read_history(self.installation.wiring.state, Codec(), key))[1]
        received = next(e.data["payload"] for e in history if e.data.get("event") == "MailReceived")
        return Walked(
            run=run,
            already=answer.already,
            row=row,
            actions=await self.models.actions(run, agent="inbox", tenant=tenant),
            history=history,
            start=msgspec.convert(received, MailReceived),
            asked=list(self.recording.asked),
        )

    def signal(self, run: str, tenant: str, event: str, **fields: object) -> Walked:
        """Hands an event from a person to a run, and looks when it has come to rest again."""
        return self.now(self._signal(RunKey(tenant, "inbox", run), event, fields))

    async def _signal(self, key: RunKey, event: str, fields: dict[str, object]) -> Walked:
        wiring = self.installation.wiring
        self.recording.asked.clear()
        client = CommandClient(wiring.connection, wiring.commands, wiring.state, wiring.clock, issuer="cli")
        answer = await client.give(key, "signal", {"event": event, "body": fields}, actor="person")
        assert answer.ok and answer.version is not None, answer
        version = answer.version

        async def settled() -> bool:
            done = await self.models.settled([key.run], tenant=key.tenant)
            return bool(done) and await self._version(key) >= version

        await until(settled, PATIENCE_S)
        return await self._look(Submission("", key, "", answer), key.tenant)

    async def _version(self, key: RunKey) -> int:
        (row,) = await self.models.message(key.run, agent=key.agent, tenant=key.tenant)
        return int(row["version"])

    def rows(self, tenant: str) -> list[dict[str, Any]]:
        """What `waybook messages --json` prints for a tenant."""
        return self.now(self.models.messages(tenant=tenant))

    def object(self, name: str) -> bytes:
        """A payload that was put aside."""
        return self.now(self.installation.wiring.objects.get(name))

    def execute(self, query: str) -> list[Any]:
        """Rows of a query of the test's own."""

        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(self.installation.database_url)
            try:
                return list(await connection.fetch(query))
            finally:
                await connection.close()

        return self.now(fetch())


def settings(directory: DataDirectory) -> Settings:
    """A shop whose own receiver vouches for senders, and that lets go what no gate objects to."""
    return Settings(
        data_dir=str(directory.path),
        own_addresses=(OURS,),
        own_hosts=("shop.example",),
        receivers=(RECEIVER,),
        metrics_port=0,
    )


MANY = 100_000


def agent(given: Settings, recording: RulesModel, *sources: Knowledge) -> tuple[AgentDefinition, dict[type, Any]]:
    """`inbox` with the rules in every role; route is as permissive as it can be, so that gates alone hold a mail."""
    known = MemoryKnowledge(contacts={"ana@customer.example": ANA}, facts={ANA.id: ["address on file: Elm Street 7"]})
    scan = ScanSettings(
        own_hosts=frozenset(given.own_hosts),
        known_hosts=frozenset({"customer.example"}),
        receivers=frozenset(given.receivers),
    )
    route = RouteSettings(
        auto_reply=True, shadow=False, threshold=0.0, without_guard=True, domain_hourly_cap=MANY, sender_daily_cap=MANY
    )
    return define(Inbox), {
        Models: Models.all_by(recording),
        Brakes: StandingBrakes(shadow=False),
        Knowledge: CombinedKnowledge(*sources, known),
        InboxSettings: InboxSettings(scan=scan, route=route),
        Clock: SystemClock(),
    }


@asynccontextmanager
async def opened(directory: DataDirectory, folder: Path) -> AsyncIterator[Desk]:
    """The installation, walking, for the time of the block."""
    given = settings(directory)
    async with AsyncExitStack() as stack:
        observing = stack.enter_context(observed(given, [define(Inbox)]))
        installation = await stack.enter_async_context(owned(given, "run", None, observing.hook))
        await stack.enter_async_context(projecting(installation, observing))
        mails = await stack.enter_async_context(EarlierMails.open(installation.database_url, given.tenant))
        models = await stack.enter_async_context(ReadModels.open(installation.database_url))
        desk = Desk(installation, models, observing, directory, folder)
        definition, provides = agent(given, desk.recording, mails)
        walker = await stack.enter_async_context(walking(installation, [definition], provides))
        await stack.enter_async_context(observing.serving(installation.wiring.connection, walker))
        await _read_models_are_made(models)
        yield desk


async def _read_models_are_made(models: ReadModels) -> None:
    async def made() -> bool:
        with suppress(NoReadModels):
            await models.settled([])
            return True
        return False

    await until(made, PATIENCE_S)


def in_a_thread(directory: DataDirectory, folder: Path) -> Iterator[Desk]:
    """The desk on a loop of its own; what breaks it is raised at its end."""
    ready: list[Desk] = []
    failure: list[BaseException] = []
    begun, done = threading.Event(), threading.Event()

    async def live() -> None:
        async with opened(directory, folder) as desk:
            ready.append(desk)
            begun.set()
            await asyncio.to_thread(done.wait)

    def run() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:  # noqa: BLE001 - raised where the desk is closed
            failure.append(error)
        finally:
            begun.set()

    thread = threading.Thread(target=run, name="desk")
    thread.start()
    begun.wait()
    try:
        if ready:
            yield ready[0]
    finally:
        done.set()
        thread.join()
    if failure:
        raise failure[0]


def listed(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """State by subject."""
    return {row["subject"]: row["status"] for row in rows}

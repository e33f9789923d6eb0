"""Publishes starts in groups and matches the answers to them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from uuid import uuid4

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.engine.ports import Clock, CommandQueue, Objects, Outgoing, StreamFull
from waybook.events.command import Answer, Command
from waybook.events.headers import REPLY
from waybook.events.subjects import Issuer, RunKey, command_subject
from waybook.inbox.intake.sources import Item, Skipped
from waybook.inbox.starting import MailStart, mail_start

log = logging.getLogger(__name__)

GROUP = 64
UNANSWERED = 2_000
"""How many starts may wait for their answer before reading goes on: it bounds memory."""

FULL_PAUSE_S = 0.5
REUSED = "-reused"
GROUP_BYTES = 8 * 1024 * 1024
"""Bytes of mails after which a group is published: with the largest mails a group is one or two of them."""


UNREADABLE = "The mail could not be read: a fault of this program, which its log describes."


class Submission(msgspec.Struct):
    """One mail on its way: where it was found, the run it belongs to, and the walker's answer once it is there."""

    path: str
    key: RunKey
    command: str
    answer: Answer | None = None


def taken_or_refused(
    submissions: Iterable[Submission], skipped: Iterable[Skipped]
) -> tuple[list[Submission], list[Skipped]]:
    """The mails that have a run, and with what was skipped those that a walker refused, with its reason."""
    taken: list[Submission] = []
    left_out = list(skipped)
    for one in submissions:
        if one.answer is None or one.answer.ok:
            taken.append(one)
        else:
            left_out.append(Skipped(one.path, f"refused ({one.answer.reason}): {one.answer.text}"))
    return taken, left_out


class Starts:
    """Publishes the starts of mails for one tenant and mailbox. `actor` says who takes them in.

    `wait_when_full`: while COMMANDS is full, wait for walkers to drain it instead of raising StreamFull.
    """

    def __init__(
        self,
        connection: Connection,
        commands: CommandQueue,
        objects: Objects,
        clock: Clock,
        *,
        tenant: str,
        mailbox: str,
        actor: str,
        issuer: Issuer = "cli",
        own_addresses: Collection[str] = (),
        wait_when_full: bool = False,
    ) -> None:
        self._connection = connection
        self._commands = commands
        self._objects = objects
        self._clock = clock
        self._tenant = tenant
        self._mailbox = mailbox
        self._actor = actor
        self._issuer: Issuer = issuer
        self._own_addresses = tuple(own_addresses)
        self._wait_when_full = wait_when_full
        self._inbox = connection.inbox()
        self._open: dict[str, Submission] = {}
        self._answered = asyncio.Event()
        self._listening = False

    async def submit(self, items: Iterable[Item | Skipped]) -> AsyncIterator[Submission | Skipped]:
        """Publishes every mail and yields it as soon as it is stored; what is skipped is passed on.

        Raises StreamFull (unless waiting), PortUnavailable, PortMisconfigured; what was yielded is stored, the
        rest may be taken in again without harm.
        """
        if not self._listening:
            self._connection.subscribe(self._inbox, self._receive)
            self._listening = True
        for group in _grouped(items):
            mails = [item for item in group if isinstance(item, Item)]
            for skipped in group:
                if isinstance(skipped, Skipped):
                    yield skipped
            for one in await self._publish(mails):
                yield one
            await self._until_few_open()

    async def _publish(self, mails: list[Item]) -> list[Submission | Skipped]:
        submissions: list[Submission | Skipped] = []
        messages = []
        for item in mails:
            try:
                start = await asyncio.to_thread(self._start, item)
            except Exception:
                # The mails behind it must not wait for it; what it holds is for whoever reads the log.
                log.exception("a mail cannot be read", extra={"action": "mail_unreadable", "path": item.path})
                submissions.append(Skipped(item.path, UNREADABLE))
                continue
            for name, data in start.objects.items():
                await self._objects.put(name, data)
            command = uuid4().hex
            submission = Submission(item.path, start.key, command)
            self._open[command] = submission
            submissions.append(submission)
            messages.append(self._message(command, start))
        await self._store(messages)
        return submissions

    def _start(self, item: Item) -> MailStart:
        return mail_start(
            item.raw,
            tenant=self._tenant,
            mailbox=self._mailbox,
            received_at=self._clock.now(),
            own_addresses=self._own_addresses,
        )

    def _message(self, command: str, start: MailStart) -> Outgoing:
        body = Command(
            id=command,
            verb="start",
            issued_at=self._clock.now(),
            actor=self._actor,
            payload=msgspec.Raw(msgspec.json.encode(start.payload)),
        )
        subject = command_subject(start.key, "start", issuer=self._issuer)
        return Outgoing(subject, msgspec.json.encode(body), command, {REPLY: self._inbox})

    async def _store(self, messages: list[Outgoing]) -> None:
        while messages:
            try:
                await self._commands.publish_many(messages)
                return
            except StreamFull:
                if not self._wait_when_full:
                    raise
                log.info("COMMANDS is full, waiting", extra={"action": "commands_full"})
                await asyncio.sleep(FULL_PAUSE_S)

    def _receive(self, subject: bytes, reply: bytes, headers: bytes | None, payload: bytes) -> None:
        try:
            answer = msgspec.json.decode(payload, type=Answer)
        except msgspec.DecodeError as error:
            log.warning("an answer cannot be read", extra={"action": "answer_unreadable", "error": str(error)})
            return
        submission = self._open.pop(answer.command.removesuffix(REUSED), None)
        if submission is not None:
            submission.answer = answer
            submission.key = msgspec.structs.replace(submission.key, run=answer.run)
            self._answered.set()

    @property
    def unanswered(self) -> int:
        """How many starts no walker has answered yet."""
        return len(self._open)

    async def _until_few_open(self) -> None:
        while len(self._open) > UNANSWERED:
            await self._next_answer(1.0)

    async def until_answered(self, patience_s: float) -> bool:
        """Waits until every start has its answer; False when none came for `patience_s` seconds."""
        loop = asyncio.get_running_loop()
        last, since = len(self._open), loop.time()
        while self._open:
            await self._next_answer(0.25)
            if len(self._open) != last:
                last, since = len(self._open), loop.time()
            elif loop.time() - since > patience_s:
                return False
        return True

    async def _next_answer(self, timeout_s: float) -> None:
        self._answered.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._answered.wait()
        except TimeoutError:
            return


def _grouped(items: Iterable[Item | Skipped]) -> Iterator[list[Item | Skipped]]:
    """What is published together: at most 64, and few where they are large."""
    group: list[Item | Skipped] = []
    size = 0
    for item in items:
        group.append(item)
        size += len(item.raw) if isinstance(item, Item) else 0
        if len(group) == GROUP or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group

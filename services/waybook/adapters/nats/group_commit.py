"""Group commit: guarded appends of many runs in one atomic batch (ADR-50), few of them singly.

With an fsync for each publish, single appends stop at about 3,000 a second; a batch pays four in all. What waits
while a batch is under way goes together into the next one. Members of a batch mean nothing to each other: each
has its own subject, guard and outcome.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from functools import partial

import msgspec

from waybook.adapters.nats.connection import Connection, Lost, Reply
from waybook.adapters.nats.errors import SEQUENCE_TAKEN, ApiError, PubAck, meaning, port_error
from waybook.adapters.nats.frames import END, FIRST_LINE, header_lines
from waybook.adapters.nats.history import DirectReads
from waybook.adapters.nats.outcome import LeaderReads, is_own
from waybook.engine.hooks import GroupSent, Hook, ignore
from waybook.engine.ports import AppendConflict, Draft, OutcomeUnknown, PortError, PortMisconfigured, PortUnavailable
from waybook.events.headers import EXPECTED_STREAM, EXPECTED_SUBJECT_SEQUENCE

log = logging.getLogger(__name__)

_PUB_ACK = msgspec.json.Decoder(PubAck)
_SILENT = PubAck(error=ApiError(503, 0, "no stream answers"))
SURE_BYTES = 64 * 1024  # every server takes that
DOUBT_LOG_TRIES = 20
ALONE = GroupSent(1)
DOUBT_WAIT_S = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)  # between the tries of one commit


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How appends are gathered. Fewer than `least` waiting go singly. `most` and `most_bytes` bound one batch.

    `open_batches` is for one process: the server takes 50 open batches a stream, so min(3, 40 / walkers).
    `eager`: that many waiting, and no fewer than are under way, are sent although another batch is under way. A batch
    costs the server about as much as 30 of its members, and what waits for one answer waits in lockstep: half of 64
    side by side are walked while the server stores the other half.
    """

    least: int = 6
    most: int = 200
    most_bytes: int = 4 * 1024 * 1024
    open_batches: int = 3
    eager: int = 32


class Member:
    """A draft on its way, and where its outcome is awaited."""

    __slots__ = ("code", "draft", "future", "head", "sent", "subject", "tries")

    def __init__(self, draft: Draft, guard: bytes, future: asyncio.Future[int], tries: int | None) -> None:
        self.draft = draft
        self.future = future
        self.tries = tries
        self.subject = draft.subject.encode()
        self.head = b"%b%d\r\n%b" % (guard, draft.expected, header_lines(draft.headers))
        self.sent = 0  # how often
        self.code = 0  # of the last refusal

    def stored(self, sequence: int) -> None:
        """The commit stands at `sequence`."""
        if not self.future.done():
            self.future.set_result(sequence)

    def failed(self, error: Exception) -> None:
        """The commit is not stored, or that is unknown and nobody will ask again."""
        if not self.future.done():
            self.future.set_exception(error)


class GroupCommit:
    """Sends drafts to one stream and settles the outcome of each; `hook` is told of every publish."""

    def __init__(self, connection: Connection, stream: str, settings: GroupSettings, hook: Hook = ignore) -> None:
        self.stream = stream
        self._connection = connection
        self._settings = settings
        self._hook = hook
        self._leader = LeaderReads(connection, stream)
        self._direct = DirectReads(connection, stream)
        self._guard = FIRST_LINE + f"{EXPECTED_STREAM}: {stream}\r\n{EXPECTED_SUBJECT_SEQUENCE}: ".encode()
        self._waiting: deque[Member] = deque()
        self._singles = 0  # under way
        self._batches = 0  # under way
        self._members = 0  # in the batches under way
        self._batch_allowed = True
        self.batches = 0  # sent since the start
        self._batch_prefix = connection.token.encode() + b"-g"
        self._pumping = False
        self._tasks: set[asyncio.Task[None]] = set()
        connection.watch(self._on_connection)

    def submit(self, draft: Draft, tries: int | None) -> asyncio.Future[int]:
        """Takes a draft; the future ends with its sequence or with a port error."""
        loop = asyncio.get_running_loop()
        member = Member(draft, self._guard, loop.create_future(), tries)
        size = len(draft.payload) + len(member.head)
        if size > SURE_BYTES:
            self._connection.check_size(draft.subject, size)
        self._waiting.append(member)
        if not self._pumping:
            self._pumping = True
            loop.call_soon(self._pump)
        elif len(self._waiting) >= self._settings.eager and self._may_batch():
            self._pump()
        return member.future

    def _may_batch(self) -> bool:
        """Whether so many wait that another batch pays: each has its price, and the ones under way grow the next."""
        settings = self._settings
        return len(self._waiting) >= max(settings.eager, self._members) and self._batches < settings.open_batches

    def _kick(self) -> None:
        if self._waiting and not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _on_connection(self, connected: bool) -> None:
        if connected:
            self._kick()
        elif self._connection.closed:
            waiting, self._waiting = self._waiting, deque()
            for member in waiting:
                member.failed(PortUnavailable("the connection to NATS was closed; this commit was not sent"))

    def _pump(self) -> None:
        self._pumping = False
        settings = self._settings
        while self._waiting and self._connection.connected:
            count = len(self._waiting)
            few = count < settings.least
            if self._batches and not self._may_batch():
                return
            if few and self._singles + count >= settings.least and self._batch_allowed:
                return  # the end of a single comes sooner than that of a batch, and may find more
            self._send(self._take(settings.most))

    def _send(self, members: list[Member], refusals: int = 0) -> None:
        if not self._connection.connected:
            self._waiting.extendleft(reversed(members))
        elif len(members) < self._settings.least or not self._batch_allowed:
            self._send_singly(members)
        else:
            self._send_batch(members, refusals)

    def _take(self, most: int) -> list[Member]:
        """Waiting members, at most one a subject: a batch takes no second guard on a subject."""
        taken: dict[bytes, Member] = {}
        later: list[Member] = []
        room = self._settings.most_bytes
        waiting = self._waiting
        while waiting and len(taken) < most and room > 0:
            member = waiting.popleft()
            if member.future.done():  # its caller gave up
                continue
            if member.subject in taken:
                later.append(member)
                continue
            taken[member.subject] = member
            room -= len(member.draft.payload) + len(member.head)
        waiting.extendleft(reversed(later))
        return list(taken.values())

    # -- singly

    def _send_singly(self, members: list[Member]) -> None:
        frames = []
        for member in members:
            member.sent += 1
            self._singles += 1
            reply = self._connection.expect(member.draft.subject, partial(self._on_single, member))
            frames.append(_frame(member, reply, END))
            self._hook(ALONE)
        self._connection.send(b"".join(frames))

    def _on_single(self, member: Member, answer: Reply | Lost) -> None:
        self._singles -= 1
        ack = read_ack(answer)
        if ack.seq and ack.error is None:
            member.stored(ack.seq)
        else:
            self._refused_singly(member, ack, answer)
        self._kick()

    def _refused_singly(self, member: Member, ack: PubAck, answer: Reply | Lost) -> None:
        if isinstance(answer, PortMisconfigured):
            self._refuse(member, answer)
            return
        error = ack.error or _SILENT.error
        assert error is not None
        member.code = error.err_code
        match meaning(error):
            case "conflict" | "unknown" | "away" | "busy":
                self._spawn(self._settle(member))
            case _:
                self._refuse(member, port_error(error, f"append to {self.stream}"))

    def _refuse(self, member: Member, error: Exception) -> None:
        """The server does not store it; an earlier try in doubt may have been stored."""
        if member.sent > 1:
            self._spawn(self._settle(member, give_up=error))
        else:
            member.failed(error)

    # -- in a batch

    def _send_batch(self, members: list[Member], refusals: int) -> None:
        self._batches += 1
        self._members += len(members)
        self.batches += 1
        self._hook(GroupSent(len(members)))
        batch = self._batch_prefix + b"%d" % self.batches
        reply = self._connection.expect(members[0].draft.subject, lambda a: on_answer(a), many=True)

        def on_answer(answer: Reply | Lost) -> None:
            if isinstance(answer, Reply) and not answer.payload and not answer.status:
                return  # the first member was taken
            self._connection.forget(reply)
            self._on_batch(members, refusals, answer)

        frames = []
        last = len(members)
        for number, member in enumerate(members, 1):
            member.sent += 1
            tail = b"Nats-Batch-Id: %b\r\nNats-Batch-Sequence: %d\r\n" % (batch, number)
            if number == last:
                frames.append(_frame(member, reply, tail + b"Nats-Batch-Commit: 1\r\n\r\n"))
            else:
                frames.append(_frame(member, reply if number == 1 else b"", tail + END))
        self._connection.send(b"".join(frames))

    def _on_batch(self, members: list[Member], refusals: int, answer: Reply | Lost) -> None:
        self._batches -= 1
        self._members -= len(members)
        ack = read_ack(answer)
        if ack.error is None and ack.count == len(members):
            first = ack.seq - ack.count + 1
            for number, member in enumerate(members):
                member.stored(first + number)
        elif isinstance(answer, PortMisconfigured):
            for member in members:
                self._refuse(member, answer)
        else:
            self._refused_batch(members, refusals, ack.error or ApiError(0, 10176, "an answer without a count"))
        self._kick()

    def _refused_batch(self, members: list[Member], refusals: int, error: ApiError) -> None:
        word = meaning(error)
        if word == "conflict":
            self._spawn(self._sort_out(members, refusals))
        elif word in ("unknown", "away"):
            for member in members:
                member.code = 0
                self._spawn(self._settle(member))
        elif word == "full":
            for member in members:
                self._refuse(member, port_error(error, f"append to {self.stream}"))
        elif not self._connection.connected:
            self._waiting.extendleft(reversed(members))
        else:
            if word == "off":
                self._batch_allowed = False
                log.warning(
                    "the stream takes no atomic batches, appends go singly",
                    extra={"action": "group_commit_off", "stream": self.stream},
                )
            self._send_singly(members)

    async def _sort_out(self, members: list[Member], refusals: int) -> None:
        """Sends the innocent members of a refused batch again; nothing of it was stored."""
        innocent = members
        if refusals == 0:
            last = await self._last_sequences(members)
            innocent = [m for m in members if last.get(m.draft.subject, 0) <= m.draft.expected]
            for member in members:
                if last.get(member.draft.subject, 0) > member.draft.expected:
                    member.code = SEQUENCE_TAKEN
                    self._spawn(self._settle(member))
        groups = [innocent] if len(innocent) < len(members) else [innocent[::2], innocent[1::2]]
        for group in filter(None, groups):
            self._send(group, refusals + 1)

    async def _last_sequences(self, members: list[Member]) -> dict[str, int]:
        try:
            return await self._direct.last_sequences([m.draft.subject for m in members])
        except PortError as exc:
            log.info("no hint whose guard is stale", extra={"action": "group_commit_no_hint", "error": str(exc)})
            return {}

    # -- outcomes

    async def _settle(self, member: Member, give_up: Exception | None = None) -> None:
        """Asks the leader who stands in the member's place; nobody: the same bytes are sent again."""
        while not member.future.done():
            await asyncio.sleep(DOUBT_WAIT_S[min(member.sent, len(DOUBT_WAIT_S)) - 1])
            try:
                await self._connection.until_connected()
                found = await self._leader.successor(member.draft)
                if found is None and member.code == SEQUENCE_TAKEN:
                    await self._check_guard(member)
            except PortMisconfigured as exc:
                member.failed(exc)
            except PortError as exc:
                member.sent += 1
                if member.sent % DOUBT_LOG_TRIES == 0:
                    what = {"action": "append_in_doubt", "subject": member.draft.subject, "tries": member.sent}
                    log.warning("an append is in doubt: %s", exc, extra=what)
                if self._connection.closed or (member.tries is not None and member.sent > member.tries):
                    member.failed(OutcomeUnknown(f"append to {member.draft.subject}: {exc}"))
            else:
                self._decide(member, None if found is None else (found.sequence, is_own(member.draft, found)), give_up)
                return

    async def _check_guard(self, member: Member) -> None:
        """A stale guard without a successor: either passing, or the expected sequence never was on this subject."""
        last = await self._leader.last(member.draft.subject)
        if (last.sequence if last else 0) != member.draft.expected:
            member.failed(_conflict(member.draft))

    def _decide(self, member: Member, found: tuple[int, bool] | None, give_up: Exception | None) -> None:
        if found is not None:
            sequence, own = found
            member.stored(sequence) if own else member.failed(_conflict(member.draft))
        elif give_up is not None:
            member.failed(give_up)
        elif member.tries is not None and member.sent >= member.tries:
            member.failed(OutcomeUnknown(f"append to {member.draft.subject}: not stored after {member.sent} tries"))
        elif not member.future.done():
            self._waiting.appendleft(member)
            self._kick()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def read_ack(answer: Reply | Lost) -> PubAck:
    """JetStream's answer to a publish; silence and loss are answers with code 503."""
    if not isinstance(answer, Reply) or answer.status:
        return _SILENT
    try:
        return _PUB_ACK.decode(answer.payload)
    except msgspec.MsgspecError:
        return PubAck(error=ApiError(0, 10176, f"not a JetStream answer: {answer.payload[:100]!r}"))


def _frame(member: Member, reply: bytes, tail: bytes) -> bytes:
    head, payload = member.head, member.draft.payload
    size = len(head) + len(tail)
    return b"HPUB %b %b %d %d\r\n%b%b%b\r\n" % (member.subject, reply, size, size + len(payload), head, tail, payload)


def _conflict(draft: Draft) -> AppendConflict:
    return AppendConflict(f"another commit follows {draft.expected} on {draft.subject}")

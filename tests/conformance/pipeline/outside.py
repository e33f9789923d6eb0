"""What passes between the workers and the outside in one case, seen from the outside."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from waybook.engine.ports import Clock, CommandQueue, Delivery, Draft, PortError
from waybook.events.codec import Codec
from waybook.events.commit import Commit
from waybook.events.engine import Claim, StepBegan, StepCompleted
from waybook.events.subjects import RunKey, parse_state_subject

if TYPE_CHECKING:
    from tests.conformance.pipeline.fuse import FusedDelivery

Place = Literal["waiting", "held", "settled"]


class Crash(msgspec.Struct, frozen=True):
    """The worker dies at the commit of `run` that ends `step` (None: the next one). `stored`: after it is stored."""

    run: RunKey
    step: str | None
    stored: bool


class Pause(msgspec.Struct, frozen=True):
    """The commit that ends `step` of `run` is held until `go` is set."""

    run: RunKey
    step: str
    reached: asyncio.Event
    go: asyncio.Event


class Tracked(msgspec.Struct):
    """A command in COMMANDS: where it is, and who has its latest delivery."""

    command: str
    subject: str
    place: Place = "waiting"
    worker: str = ""
    delivery: "FusedDelivery | None" = None
    published_at: int = 0
    not_before: int = 0
    leased_at: int = 0


class Pulls(msgspec.Struct):
    """A worker's pulls: how many wait at this moment, how many there ever were."""

    under_way: int = 0
    begun: int = 0


class _Id(msgspec.Struct):
    id: str


class Traffic:
    """Notes commands, deliveries, appends, answers and notes; carries out crash points at appends."""

    def __init__(self, codec: Codec, clock: Clock) -> None:
        self._codec = codec
        self._clock = clock
        self.commands: dict[str, Tracked] = {}
        self._by_sequence: dict[int, str] = {}
        self.runs: dict[RunKey, None] = {}
        self._begun: dict[tuple[RunKey, str], StepBegan] = {}
        self.crash: Crash | None = None
        self.pause: Pause | None = None
        self.paused = False
        self.lost_acks: set[str] = set()
        self.echoes: dict[str, int] = {}
        self._intercepts: dict[str, tuple[str, asyncio.Future[Delivery]]] = {}
        self.pulls: defaultdict[str, Pulls] = defaultdict(Pulls)
        self._deaf: set[str] = set()
        self._heard = asyncio.Event()
        self._heard.set()
        self.answers: dict[str, bytes] = {}
        self.audits: dict[str, bytes] = {}
        self.traces: list[tuple[str, bytes]] = []
        self.buried: list[tuple[str, bytes]] = []

    # --- appends

    async def before_append(self, draft: Draft) -> Crash | None:
        """Called before a commit is sent; the crash that is to happen at it, if any."""
        key = parse_state_subject(draft.subject)
        if self.pause is not None and self._ends(draft, key, self.pause.run, self.pause.step):
            pause, self.pause = self.pause, None
            self.paused = True
            pause.reached.set()
            await pause.go.wait()
            self.paused = False
        if self.crash is not None and self._ends(draft, key, self.crash.run, self.crash.step):
            crash, self.crash = self.crash, None
            return crash
        return None

    def _ends(self, draft: Draft, key: RunKey, run: RunKey, step: str | None) -> bool:
        if key != run:
            return False
        commit = self._commit(draft)
        return step is None or any(
            type(event) is StepCompleted and self._step_of(key, event.action) == step for event in commit.events
        )

    def _step_of(self, key: RunKey, action: str) -> str | None:
        began = self._begun.get((key, action))
        return began.step if began is not None else None

    def command_of(self, key: RunKey, action: str) -> str:
        """The command under which an action began."""
        began = self._begun.get((key, action))
        return began.command if began is not None else ""

    def _commit(self, draft: Draft) -> Commit:
        return self._codec.decode(draft.payload, draft.headers)

    def appended(self, draft: Draft) -> None:
        """A commit is stored, and the one who sent it knows."""
        key = parse_state_subject(draft.subject)
        self.runs.setdefault(key)
        for event in self._commit(draft).events:
            if type(event) is StepBegan:
                self._begun[key, event.action] = event

    # --- commands

    async def publish(
        self, queue: CommandQueue, subject: str, payload: bytes, command: str, headers: Mapping[str, str] | None
    ) -> bool:
        """Stores a command through `queue` and keeps track of it; False when it was there before."""
        known = command in self.commands
        self.commands.setdefault(command, Tracked(command, subject, published_at=self._clock.now()))
        try:
            new = await queue.publish(subject, payload, command=command, headers=headers)
        except PortError:
            if not known:
                del self.commands[command]
            raise
        return new

    def received_at(self, delivery: Delivery) -> int:
        """When the command was stored, by the clock of the case, which is the server's."""
        tracked = self.commands.get(command_id(delivery))
        return tracked.published_at if tracked is not None else delivery.received_at

    def note_sequence(self, claim: Claim, command: str) -> None:
        """Which command stands at the claim's sequence."""
        self._by_sequence[claim.sequence] = command

    def delivered(self, delivery: "FusedDelivery", worker: str) -> bool:
        """Notes a delivery; True when it is to be delivered once more at the same time, to another worker."""
        command = command_id(delivery)
        self.note_sequence(delivery.claim, command)
        tracked = self.commands.setdefault(command, Tracked(command, delivery.subject))
        tracked.place, tracked.worker, tracked.delivery = "held", worker, delivery
        tracked.leased_at = self._clock.now()
        if self.echoes.get(command, 0) <= 0:
            self._deaf.clear()
            self._heard.set()
            return False
        self.echoes[command] -= 1
        self._deaf.add(worker)
        self._heard.clear()
        tracked.place, tracked.worker = "waiting", ""
        return True

    @contextmanager
    def pulling(self, worker: str) -> Iterator[None]:
        """Notes a pull of this worker, for the time of the block."""
        pulls = self.pulls[worker]
        pulls.under_way += 1
        pulls.begun += 1
        try:
            yield
        finally:
            pulls.under_way -= 1

    async def until_heard(self, worker: str) -> None:
        """Returns when the next delivery may be this worker's: another one is to get the echo of what it got."""
        if worker in self._deaf:
            await self._heard.wait()

    def intercept(self, command: str, holder: str) -> asyncio.Future[Delivery]:
        """Whoever pulls this command next hands it over to `holder`."""
        future: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        self._intercepts[command] = (holder, future)
        return future

    def intercepted(self, delivery: Delivery) -> bool:
        """Hands a delivery over, when somebody waits for it; True then."""
        command = command_id(delivery)
        if command not in self._intercepts:
            return False
        holder, future = self._intercepts.pop(command)
        self.note_sequence(delivery.claim, command)
        tracked = self.commands[command]
        tracked.place, tracked.worker, tracked.leased_at = "held", holder, self._clock.now()
        future.set_result(delivery)
        return True

    def settled(self, claim: Claim) -> None:
        """Acknowledged or terminated: the command has left the queue."""
        self.commands[self._by_sequence[claim.sequence]].place = "settled"

    def given_back(self, claim: Claim, delay_s: float) -> None:
        tracked = self.commands[self._by_sequence[claim.sequence]]
        tracked.place, tracked.worker = "waiting", ""
        tracked.not_before = self._clock.now() + round(delay_s * 1000)

    def ack_is_lost(self, claim: Claim) -> bool:
        """Whether the acknowledgement of this delivery gets lost on its way, once."""
        command = self._by_sequence[claim.sequence]
        if command not in self.lost_acks:
            return False
        self.lost_acks.discard(command)
        self.commands[command].place = "settled"
        return True

    # --- answers

    def answered(self, subject: str, payload: bytes) -> None:
        self.answers.setdefault(subject, payload)


def command_id(delivery: Delivery) -> str:
    """The id of a delivered command, whatever else it holds."""
    try:
        return msgspec.json.decode(delivery.payload, type=_Id).id
    except msgspec.DecodeError:
        return f"unreadable-{delivery.claim.sequence}"

"""Random histories of runs that use every event a read model listens to; each prefix can be folded by the engine."""

import random
from collections.abc import Callable
from typing import Literal

import msgspec
from tests.unit.projections import histories as h

from waybook.engine.run import NO_PERSON
from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey
from waybook.projections.progress import Entry

STATES = ("received", "security_check", "classifying", "drafting", "draft_ready", "approved", "failed")
TEXTS = ("", "plain", "nul\x00here", "Grüße", "\U0001f600", "a" * 300)


class RandomRun:
    """Writes one run's history, commit by commit; remembers just enough to stay legal."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.version = 0
        self.walk = 1
        self.state = "received"
        self.ended = False
        self.events: list[e.EngineEvent] = []
        self.open: dict[str, e.StepBegan] = {}
        self.released: dict[str, e.StepBegan] = {}
        self.triggers = 0
        self.offers: list[e.StepOffered] = []
        self.retries: dict[str, e.StepBegan] = {}
        self.waits: dict[str, tuple[str, e.StepBegan]] = {}
        self.timers: list[str] = []
        self.failures: dict[str, int] = {}
        self.approvals: list[str] = []
        self.decided: list[str] = []
        self.operations: list[str] = []
        self.unknown: set[str] = set()
        self.parked: dict[str, e.StepBegan] = {}

    def next_commit(self) -> Commit:
        """The next commit, of one to four moves."""
        self.version += 1
        self.events = []
        if self.version == 1:
            self._add(*h.started(subject=self.chance.choice(TEXTS)))
        for _ in range(self.chance.randint(1, 4)):
            if not self.ended:
                self.chance.choice(_MOVES)(self)
        if not self.events:
            self._add(e.FieldsSet(row="f", fields={"note": self.chance.choice(TEXTS)}))
        return h.commit(self.version, *self.events, walk=self.walk)

    def _add(self, *events: e.EngineEvent) -> str:
        self.events += events
        return f"{self.version}.{len(self.events) - 1}"

    def begin(self) -> None:
        step = self.chance.choice(h.STEPS)
        self._begin(step, self._trigger(), 1)

    def _trigger(self) -> str:
        self.triggers += 1
        return f"1.{self.triggers}"

    def _begin(self, step: str, trigger: str, attempt: int) -> None:
        action = f"{self.version}.{len(self.events)}"
        event = h.began(action, step, trigger=trigger, attempt=attempt, walk=self.walk)
        self._add(event)
        self.open[action] = event

    def _take(self, group: dict[str, e.StepBegan]) -> tuple[str, e.StepBegan] | None:
        if not group:
            return None
        action = self.chance.choice(list(group))
        return action, group.pop(action)

    def complete(self) -> None:
        if (taken := self._take(self.open)) is not None:
            index = len(self.events) + 1
            self._add(h.completed(taken[0], index), h.published("Done", taken[0], text=self.chance.choice(TEXTS)))

    def fail(self) -> None:
        if (taken := self._take(self.open)) is None:
            return
        action, event = taken
        failures = self.failures[event.step] = self.failures.get(event.step, 0) + 1
        exhausted = self.chance.random() < 0.3
        self._add(h.failed(action, event.step, failures=failures, exhausted=exhausted))
        self._move("failed", error_message=self.chance.choice(TEXTS))
        if not exhausted:
            timer = self._add(e.TimerArmed(timer_class="retry", due=h.BEGAN_AT + 900, about="x"))
            self.timers.append(timer)
            attempt = event.attempt + 1
            due = h.BEGAN_AT + 900
            self._add(e.RetryScheduled(step=event.step, trigger=event.trigger, attempt=attempt, due=due, timer=timer))
            self.retries[timer] = event

    def fire(self) -> None:
        timer = self._some_timer()
        if timer is None:
            return
        self._add(e.TimerFired(timer=timer))
        waited = self.waits.get(timer)
        if waited is not None and self.chance.random() < 0.6:
            del self.waits[timer]
            self._begin(waited[1].step, waited[1].trigger, waited[1].attempt + 1)
        retried = self.retries.pop(timer, None)
        if retried is not None and self.chance.random() < 0.6:
            self._move("received")
            self._begin(retried.step, retried.trigger, retried.attempt + 1)

    def cancel_timer(self) -> None:
        if (timer := self._some_timer()) is not None:
            self._add(e.TimerCancelled(timer=timer, reason="closed"))

    def _some_timer(self) -> str | None:
        if not self.timers:
            return None
        return self.timers.pop(self.chance.randrange(len(self.timers)))

    def arm(self) -> None:
        kind = self.chance.choice(("send", "wait", "deadline"))
        self.timers.append(self._add(e.TimerArmed(timer_class=kind, due=h.BEGAN_AT + 5, about="x")))  # type: ignore[arg-type]

    def release(self) -> None:
        if (taken := self._take(self.open)) is not None:
            self._add(e.ActionReleased(action=taken[0], reason="stop"))
            self.released[taken[0]] = taken[1]

    def wait(self) -> None:
        if (taken := self._take(self.open)) is None or taken[1].walk != self.walk:
            return
        due = h.BEGAN_AT + 700
        self._add(e.ActionReleased(action=taken[0], reason="wait", until=due))
        about = f"{self.walk}:{taken[1].step}:{taken[1].trigger}"
        timer = self._add(e.TimerArmed(timer_class="wait", due=due, about=about))
        self.timers.append(timer)
        self.waits[timer] = taken

    def _end_waits(self, reason: Literal["closed", "taken_over"]) -> None:
        for timer, (action, _) in self.waits.items():
            self._add(e.ActionAbandoned(action=action, reason=reason))
            if timer in self.timers:
                self.timers.remove(timer)
                self._add(e.TimerCancelled(timer=timer, reason=reason))
        self.waits.clear()

    def resume(self) -> None:
        if (taken := self._take(self.released)) is not None and taken[1].walk == self.walk:
            self._begin(taken[1].step, taken[1].trigger, taken[1].attempt + 1)

    def lose(self) -> None:
        if (taken := self._take(self.open)) is None:
            return
        action, event = taken
        failures = self.failures[event.step] = self.failures.get(event.step, 0) + 1
        exhausted = failures >= 3
        self._add(e.ActionAbandoned(action=action, reason="lost", failures=failures, exhausted=exhausted))
        if exhausted:
            self._add(e.CommandConvicted(command="c1", reason="lost its worker"))
            self._move("failed")
        elif event.walk == self.walk:
            self._begin(event.step, event.trigger, event.attempt + 1)

    def renew(self) -> None:
        self._add(e.LeaseRenewed(actions=tuple(self.open), claim=h.CLAIM))

    def offer(self) -> None:
        event = e.StepOffered(step="draft", trigger=self._trigger(), walk=self.walk, bindings={}, branch="b")
        self._add(event)
        self.offers.append(event)

    def take_offer(self) -> None:
        if self.offers:
            event = self.offers.pop(0)
            self._begin(event.step, event.trigger, 1)

    def ask(self) -> None:
        self.approvals.append(
            self._add(
                e.ApprovalRequested(
                    action="a",
                    resource="r",
                    scope="s",
                    digest="d",
                    requester="q",
                    deciders=("ann",) * self.chance.randint(0, 1),
                    expires=self.chance.choice((None, h.BEGAN_AT + 1)),
                    policy=1,
                    summary=self.chance.choice((None, *TEXTS)),
                )
            )
        )

    def decide(self) -> None:
        if self.approvals:
            approval = self.approvals.pop()
            if self.chance.random() < 0.3:
                self._add(e.ApprovalRevoked(approval=approval, reason=self.chance.choice(("edit", "expired"))))
                return
            self._add(
                e.ApprovalDecided(
                    approval=approval,
                    decision="approved",
                    by="p",
                    received_at=h.BEGAN_AT,
                    policy=1,
                    grants=1,
                    reason=self.chance.choice((None, "fine")),
                )
            )
            self.decided.append(approval)

    def use(self) -> None:
        if self.decided:
            approval = self.decided.pop()
            if self.chance.random() < 0.5:
                self._add(e.ApprovalUsed(approval=approval, operation="op"))
            else:
                self._add(e.ApprovalRevoked(approval=approval, reason="edit"))

    def intend(self) -> None:
        key = f"op{len(self.operations) + self.version}"
        self._add(e.OperationIntended(key=key, name="send", action="a", digest="d", params={}, deadline=1))
        self.operations.append(key)

    def settle(self) -> None:
        if self.operations:
            outcome: e.OperationOutcome = self.chance.choice(("succeeded", "unknown", "failed", "absent"))
            by: Literal["call", "find", "person"] = self.chance.choice(("call", "find", "person"))
            key = self.chance.choice(self.operations)
            self._add(e.OperationSettled(key=key, outcome=outcome, by=by, evidence={"text": self.chance.choice(TEXTS)}))
            self.unknown.discard(key)
            if outcome == "unknown":
                self.unknown.add(key)

    def dispute(self) -> None:
        if self.operations:
            self._add(e.OperationDisputed(key=self.chance.choice(self.operations), outcome="succeeded", by="call"))

    def park(self) -> None:
        if self.unknown and (taken := self._take(self.open)) is not None:
            key = self.chance.choice(sorted(self.unknown))
            if self.chance.random() < 0.5:
                self.timers.append(
                    self._add(e.TimerArmed(timer_class="wait", due=h.BEGAN_AT + 9 + self.version, about=key))
                )
            self._add(e.ActionReleased(action=taken[0], reason="wait", about=key))
            self.parked[taken[0]] = taken[1]

    def go_on(self) -> None:
        if (taken := self._take(self.parked)) is not None:
            if self.chance.random() < 0.3:
                self._add(e.ActionAbandoned(action=taken[0], reason="taken_over"))
            elif taken[1].walk == self.walk:
                self._begin(taken[1].step, taken[1].trigger, taken[1].attempt + 1)

    def take_over(self) -> None:
        for action in (*self.open, *self.released):
            self._add(e.ActionAbandoned(action=action, reason="taken_over"))
        for group in (self.open, self.released, self.retries, self.offers):
            group.clear()
        self._add(e.RunTakenOver(by="p"))

    def hand_back(self) -> None:
        self._add(e.RunHandedBack(by="p"))

    def move(self) -> None:
        self._move(self.chance.choice(STATES), archive_reason=self.chance.choice((None, "spam")))

    def _move(self, to_state: str, **fields: object) -> None:
        self._add(h.moved(self.state, to_state, **fields))
        self.state = to_state

    def set_fields(self) -> None:
        self._add(e.FieldsSet(row="f", fields={self.chance.choice("abc"): self.chance.choice((None, 1, "x", [1]))}))

    def restart(self) -> None:
        if self.chance.random() < 0.3:
            self._end_waits("taken_over")
            self.walk += 1
            self.offers, self.retries = [], {}
            by = self.chance.choice(("p", NO_PERSON))
            if by != NO_PERSON:
                self.failures = {}
            self._add(e.WalkStarted(n=self.walk, keep=(), token=None, by=by, reason="redraft"))

    def end(self) -> None:
        if self.chance.random() < 0.3:
            self._move("archived")
            self._end_waits("closed")
            for action in (*self.open, *self.released, *self.parked):
                self._add(e.ActionAbandoned(action=action, reason="closed"))
            for timer in self.timers:
                self._add(e.TimerCancelled(timer=timer, reason="closed"))
            self._add(e.RunEnded(outcome="archived"))
            self.ended = True


_MOVES: tuple[Callable[[RandomRun], None], ...] = (
    RandomRun.begin, RandomRun.begin, RandomRun.complete, RandomRun.complete, RandomRun.fail, RandomRun.fire,
    RandomRun.cancel_timer, RandomRun.arm, RandomRun.release, RandomRun.wait, RandomRun.resume, RandomRun.lose, RandomRun.renew,
    RandomRun.offer, RandomRun.take_offer, RandomRun.ask, RandomRun.decide, RandomRun.use, RandomRun.intend, RandomRun.settle,
    RandomRun.settle, RandomRun.dispute, RandomRun.park, RandomRun.go_on,
    RandomRun.move, RandomRun.take_over, RandomRun.hand_back, RandomRun.set_fields, RandomRun.restart, RandomRun.end,
)  # fmt: skip


def random_log(seed: int, *, runs: int, commits: int) -> list[Entry]:
    """A stream's beginning: the commits of several runs, interleaved."""
    chance = random.Random(seed)
    keys: list[RunKey] = [h.key(n) for n in range(runs)]
    writers = {key: RandomRun(chance) for key in keys}
    log: list[Entry] = []
    for sequence in range(1, commits + 1):
        key = chance.choice(keys)
        log.append(Entry(sequence, key, _stored(writers[key].next_commit())))
    return log


def _stored(commit: Commit) -> Commit:
    """As it comes back from the stream."""
    return msgspec.json.decode(msgspec.json.encode(commit), type=Commit)

"""Two workers on one run with one side effect: bodies, calls, deaths, takeovers, answers that come late.

The run and every decision on it are the engine's own. A worker that was superseded is not told: it goes on with what it
has in memory, as a process does that was stopped for a while.
"""

from collections.abc import Callable
from typing import Literal

import msgspec
from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.effects.other_side import CALL_MS, FATES, SETTLE_MS, OtherSide
from tests.unit.engine.history import History, output

from waybook.engine.definition import TEN_MINUTES_MS, RetryPolicy
from waybook.engine.inputs import Accepted, Completed, Failed, Nothing, Outcome
from waybook.engine.intents import Intend, Park, Settle
from waybook.engine.operations import is_open, verdict
from waybook.engine.run import Action, Operation
from waybook.events.engine import Failure

SENDER = build(
    "sender",
    (step("send", takes("Go"), gives="Done", retry=RetryPolicy(max_failures=99), deadline_ms=10 * TEN_MINUTES_MS),),
    {"Go": "start", "Done": "stop"},
)


class Rules(msgspec.Struct, frozen=True):
    """What a worker keeps to. Each can be switched off, to see that the model then finds what it prevents."""

    checks_the_deadline: bool = True
    waits_before_absent_counts: bool = True
    believes_authoritative_finds_only: bool = True
    key_without_parameters: bool = True
    reconciles_first: bool = True
    stores_late_outcomes: bool = True


class Memory(msgspec.Struct):
    """What a process has in memory of the attempt that it runs."""

    action: str
    text: str
    stage: Literal["body", "calling", "unresolved"] = "body"
    intent: str = ""
    deadline: int = 0


class Effects:
    """The run, the other side and two workers. `authoritative`: what `find` does not see never happened."""

    def __init__(self, rules: Rules, *, authoritative: bool) -> None:
        self.rules = rules
        self.authoritative = authoritative
        self.other = OtherSide()
        self.history = History(SENDER)
        self.history.start()
        self.memories: list[Memory | None] = [None, None]
        self.begun: set[str] = set()
        self.heard = False
        self._begin(0)

    # --- what happens

    def move(self, number: int) -> None:
        """One thing happens; which one is in the number."""
        number, kind = divmod(number, len(_MOVES))
        number, worker = divmod(number, 2)
        _MOVES[kind](self, worker, number)

    def _work(self, worker: int, number: int) -> None:
        memory = self.memories[worker]
        if memory is None:
            return
        if memory.stage == "body":
            self._intend(worker, memory)
        elif memory.stage == "calling":
            self._call(worker, memory, number)
        else:
            self._find(worker, memory)

    def _intend(self, worker: int, memory: Memory) -> None:
        key = None if self.rules.key_without_parameters else memory.text
        known = self._operation()
        if not self.rules.reconciles_first and known is not None and known.outcome != "succeeded":
            self._apply(Settle(known.intent.key, "absent", "find", intent=known.intended_as))
        outcome = self._apply(
            Intend(memory.action, "mail", memory.text, {"text": memory.text}, key=key, call_ms=CALL_MS)
        )
        if outcome in (Accepted(), Nothing("intended")):
            operation = self._operation()
            assert operation is not None
            memory.stage, memory.intent, memory.deadline = "calling", operation.intended_as, self.history.now + CALL_MS
        elif outcome == Nothing("unresolved"):
            memory.stage = "unresolved"
        else:
            self.memories[worker] = None
            if outcome == Nothing("settled"):
                self._apply(Completed(memory.action, (output("Done"),)))

    def _call(self, worker: int, memory: Memory, number: int) -> None:
        if self.rules.checks_the_deadline and self.history.now >= memory.deadline:
            self._settle(memory, "failed")
            memory.stage = "body"
            return
        answer = self.other.call(memory.text, FATES[number % len(FATES)], memory.deadline)
        self.heard = self.heard or answer == "done"
        self._settle(memory, {"done": "succeeded", "not_done": "failed", "nothing": "unknown"}[answer])
        if answer == "not_done":
            self.memories[worker] = None
            self._apply(Failed(memory.action, Failure("OperationFailed", "refused")))
        else:
            memory.stage = "body"

    def _settle(self, memory: Memory, outcome: str) -> None:
        operation = self._operation()
        assert operation is not None
        late = self.history.it.actions[memory.action].status != "running"
        if late and not self.rules.stores_late_outcomes:
            return
        self._apply(Settle(operation.intent.key, outcome, "call", intent=memory.intent))  # type: ignore[arg-type]

    def _find(self, worker: int, memory: Memory) -> None:
        operation = self._operation()
        assert operation is not None
        said = self._said(operation)
        if isinstance(said, Settle):
            self._apply(said)
            memory.stage = "body"
            return
        self.memories[worker] = None
        self._apply(Park(memory.action, operation.intent.key, said))

    def _said(self, operation: Operation) -> Settle | int | None:
        now = self.history.now
        said = verdict(
            "found" if self.other.done and self.authoritative else "absent",
            authoritative=self.authoritative or not self.rules.believes_authoritative_finds_only,
            asked_at=now,
            deadline=operation.intent.deadline if self.rules.waits_before_absent_counts else 0,
            settle_ms=SETTLE_MS,
            margin_ms=0,
        )
        if isinstance(said, str):
            return Settle(operation.intent.key, said, "find", intent=operation.intended_as)
        return said.until

    def _kill(self, worker: int, number: int) -> None:
        self.memories[worker] = None

    def _take_over(self, worker: int, number: int) -> None:
        """A later delivery of the command: the other worker may be dead, or stopped and about to go on."""
        for action in self.history.it.open_actions():
            if action.status == "running":
                self.history.again(action.command, later=1 + number % 3)
        self._begin(worker)

    def _pass_time(self, worker: int, number: int) -> None:
        self.other.work_off(self.history.now, all_of_it=number % 2 == 0)
        self.history.now += (1_000, 12_000, 31_000, 45_000, 300_000)[number // 2 % 5]
        self.other.work_off(self.history.now, all_of_it=False)

    def _work_off(self, worker: int, number: int) -> None:
        self.other.work_off(self.history.now, all_of_it=True)

    def _fire(self, worker: int, number: int) -> None:
        """The scheduler fires what is due; a reconcile timer has the other side asked, and its answer is a command."""
        for timer, armed in list(self.history.it.timers.items()):
            if armed.due > self.history.now or timer not in self.history.it.timers:
                continue
            outcome = self.history.fire(timer)
            for key in outcome.asks if isinstance(outcome, Accepted) else ():
                said = self._said(self.history.it.operations[key])
                if isinstance(said, Settle):
                    self.history.give(said)
        self._begin(worker)

    # --- the end

    def drain(self) -> None:
        """Time goes on, workers live, everybody does what is his to do."""
        for _ in range(10):
            self._pass_time(0, 8)
            self._take_over(1, 0)
            self._fire(1, 0)
            for worker in (1, 0):
                for _ in range(6):
                    self._work(worker, 0)

    def check(self) -> None:
        """Never twice, and nothing forgotten: what happened is known as such, or known to be unknown."""
        assert len(self.other.done) <= 1, f"made {len(self.other.done)} times: {self.other.done}"

    def check_end(self) -> None:
        """In the end the run knows the truth, or a person is asked."""
        operation = self._operation()
        assert operation is not None
        assert not self.other.slow
        if is_open(operation):
            assert not self.authoritative, "the other side could have told"
            assert not self.heard, "a worker was told"
            assert not self.history.it.ended
        else:
            assert (operation.outcome == "succeeded") == bool(self.other.done)
            assert self.history.it.ended == (operation.outcome == "succeeded")

    # --- underneath

    def _begin(self, worker: int) -> None:
        """Whoever commits a begin runs it, and nobody else ever does."""
        running = [a for a in self.history.it.open_actions() if a.status == "running"]
        for action in running:
            if action.id not in self.begun:
                self.begun.add(action.id)
                self.memories[worker] = Memory(action.id, _text(action))

    def _operation(self) -> Operation | None:
        return next(reversed(self.history.it.operations.values()), None)

    def _apply(self, one: Intend | Settle | Park | Completed | Failed) -> Outcome:
        return self.history.one(self.history.apply(one))


def _text(action: Action) -> str:
    """A model writes another text at each attempt."""
    return f"text {action.attempt}"


_MOVES: tuple[Callable[[Effects, int, int], None], ...] = (
    Effects._work, Effects._work, Effects._work, Effects._work, Effects._kill, Effects._take_over, Effects._take_over,
    Effects._pass_time, Effects._pass_time, Effects._work_off, Effects._fire,
)  # fmt: skip

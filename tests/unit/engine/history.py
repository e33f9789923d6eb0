"""A run's history in memory: what the stream holds, and one place that asks the engine and stores its answer."""

from typing import Any

import msgspec

from waybook.engine.decide import NOBODY, commit_of, decide, decide_at_length
from waybook.engine.definition import Definition
from waybook.engine.fold import Stored, fold, fold_all
from waybook.engine.inputs import (
    Accepted,
    Body,
    Cancel,
    Completed,
    Continue,
    Decide,
    Decision,
    Delivered,
    Exec,
    Failed,
    HandBack,
    Input,
    Move,
    Outcome,
    Output,
    Refused,
    Released,
    Restart,
    Retry,
    Signal,
    Start,
    TakeOver,
    World,
)
from waybook.engine.intents import Compensate, Renew, Settle
from waybook.engine.run import Action, Run
from waybook.events import engine as e
from waybook.events.codec import Codec
from waybook.events.command import Command
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey

CODEC = Codec()
T0 = 1_800_000_000_000
"""A point of the five-minute grid, in ms UTC."""

VERBS = {Start: "start", Signal: "signal", Move: "move", Retry: "retry", Cancel: "cancel", Continue: "continue",
         Exec: "exec", Decide: "decide", Settle: "settle", TakeOver: "take-over", Restart: "restart", HandBack: "hand-back",
         Compensate: "compensate", Renew: "renew"}  # fmt: skip


def output(event: str, branch: str | None = None, **fields: Any) -> Output:
    return Output(event, 1, msgspec.Raw(msgspec.json.encode(fields)), fields, branch)


def canonical(value: Any) -> bytes:
    """Canonical JSON; two runs are equal when these bytes are."""
    return msgspec.json.encode(value, order="deterministic")


class History:
    """The commits of one run. `seq` of the stream grows by 3, as other runs' commits stand between.

    Every verb decides on the folded run, stores the commit, and checks that fold agrees with decide.
    """

    def __init__(self, definition: Definition, *, now: int = T0) -> None:
        self.definition = definition
        self.key = RunKey("t", definition.agent, "r")
        self.now = now
        self.run: Run | None = None
        self.stored: list[Stored] = []
        self.delivered: dict[str, Delivered] = {}

    @property
    def it(self) -> Run:
        assert self.run is not None
        return self.run

    @property
    def events(self) -> list[e.EngineEvent]:
        return [event for commit, _, _ in self.stored for event in commit.events]

    @property
    def last(self) -> tuple[e.EngineEvent, ...]:
        return self.stored[-1][0].events

    def decide(self, *inputs: Input, world: World = NOBODY) -> Decision:
        """Decides without storing anything; the run given must stay as it is. Both ways to decide come to the same."""
        before = canonical(self.run)
        decision = decide(self.definition, self.key, self.run, inputs, self.now, world)
        assert canonical(self.run) == before, "decide changed its argument"
        at_length = decide_at_length(self.definition, self.key, self.run, inputs, self.now, world)
        assert msgspec.json.encode(decision) == msgspec.json.encode(at_length), "the short way is another way"
        assert decision.outcomes == at_length.outcomes
        return decision

    def apply(self, *inputs: Input, world: World = NOBODY) -> tuple[Outcome, ...]:
        """Decides and stores; the fold of the bytes stored must be the run that decide returned."""
        decision = self.decide(*inputs, world=world)
        if decision.events:
            self.store(decision)
        for one in inputs:
            if isinstance(one, Delivered):
                self.delivered[one.command.id] = one
        return decision.outcomes

    def store(self, decision: Decision) -> None:
        assert decision.run is not None
        payload = CODEC.encode(commit_of(decision, self.definition, "w"))
        commit = CODEC.decode(payload)
        sequence = self.it.sequence + 3 if self.run is not None else 1
        before = canonical(self.run)
        after = fold(self.run, commit, sequence, key=self.key, commit_id=f"c{commit.version}")
        assert canonical(self.run) == before, "fold changed its argument"
        decision.run.sequence, decision.run.commit = sequence, f"c{commit.version}"
        assert canonical(after) == canonical(decision.run), "fold and decide disagree"
        self.stored.append((commit, sequence, f"c{commit.version}"))
        self.run = after

    def one(self, outcomes: tuple[Outcome, ...]) -> Outcome:
        assert len(outcomes) == 1
        return outcomes[0]

    # --- verbs

    def command(self, body: Body, id: str | None = None, **options: Any) -> Delivered:
        name = id or f"k{len(self.delivered) + 1}"
        claim = options.pop("claim", None) or e.Claim(len(self.delivered) + 1, 1, 1)
        limits = {k: options.pop(k) for k in ("expires_at", "if_version") if k in options}
        by, received_at = options.pop("by", "p"), options.pop("received_at", self.now)
        command = Command(id=name, verb=VERBS[type(body)], issued_at=self.now, actor=by, **limits)
        return Delivered(command, body, claim, received_at, **options)

    def give(self, body: Body, *, world: World = NOBODY, **options: Any) -> Outcome:
        return self.one(self.apply(self.command(body, **options), world=world))

    def start(self, event: str = "Go", **fields: Any) -> Outcome:
        return self.give(Start(output(event, **fields)))

    def signal(self, event: str, **options: Any) -> Outcome:
        return self.give(Signal(output(event)), **options)

    def again(self, id: str, *, held: e.Claim | None = None, world: World = NOBODY, later: int = 1) -> Outcome:
        """A later delivery of a command."""
        before = self.delivered[id]
        claim = msgspec.structs.replace(before.claim, delivery=before.claim.delivery + later)
        return self.one(self.apply(msgspec.structs.replace(before, claim=claim, held=held), world=world))

    def complete(self, step: str, *events: str | Output, world: World = NOBODY) -> Outcome:
        outputs = tuple(output(x) if isinstance(x, str) else x for x in events)
        return self.one(self.apply(Completed(self.action(step).id, outputs), world=world))

    def fail(self, step: str, *, retryable: bool = True, not_before: int | None = None) -> Outcome:
        error = e.Failure("Boom", f"{step} went wrong", retryable)
        return self.one(self.apply(Failed(self.action(step).id, error, not_before=not_before)))

    def fire(self, timer: str) -> Outcome:
        return self.give(Retry(timer))

    def release(self, *steps: str) -> Outcome:
        return self.one(self.apply(Released(tuple(self.action(s).id for s in steps))))

    # --- questions

    def action(self, step: str) -> Action:
        """The newest action of a step."""
        return next(a for a in reversed(self.it.actions.values()) if a.step == step)

    def running(self) -> list[str]:
        return [a.step for a in self.it.open_actions() if a.status == "running"]

    def timers(self) -> list[str]:
        return list(self.it.timers)

    def visited(self) -> list[str]:
        return [ev.to_state for ev in self.events if isinstance(ev, e.Transitioned)]

    def refold(self, commits: int | None = None) -> Run | None:
        """The run of the first `commits` commits, folded from nothing."""
        return fold_all(None, self.stored[:commits], key=self.key)


def accepted(outcome: Outcome) -> bool:
    return isinstance(outcome, Accepted)


def refused(outcome: Outcome) -> str | None:
    return outcome.reason if isinstance(outcome, Refused) else None


def names(commit: Commit) -> list[str]:
    return [f"{commit.version}.{i}" for i in range(len(commit.events))]

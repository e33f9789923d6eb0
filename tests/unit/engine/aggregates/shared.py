"""A system aggregate in memory: one place that asks the engine, stores its answer, and folds it again."""

from tests.unit.engine.history import CODEC, T0, canonical

from waybook.engine.aggregates.decide import decide_aggregate
from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.requests import Asked, Body
from waybook.engine.fold import Stored, fold, fold_all
from waybook.engine.inputs import Decision, Outcome, Refused
from waybook.engine.run import Run
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey


class Stale(Exception):
    """Another commit took the place."""


class Log:
    """The commits of one aggregate; an append names the version that it follows, as the guard of STATE does."""

    def __init__(self, agent: str, run: str = "_") -> None:
        self.key = RunKey("t", agent, run)
        self.stored: list[Stored] = []
        self.now = T0

    def read(self) -> Run | None:
        return fold_all(None, self.stored, key=self.key)

    def append(self, decision: Decision) -> None:
        """Raises Stale when the decision was made on an older state."""
        if not decision.events:
            return
        assert decision.run is not None
        if decision.run.version != len(self.stored) + 1:
            raise Stale
        commit = Commit(
            version=decision.run.version, walk=1, at=decision.run.at, actor="w", definition="",
            events=decision.events, commands=decision.commands,
        )  # fmt: skip
        stored = CODEC.decode(CODEC.encode(commit))
        decision.run.sequence, decision.run.commit = commit.version, f"c{commit.version}"
        before = self.read()
        after = fold(before, stored, commit.version, key=self.key, commit_id=f"c{commit.version}")
        assert canonical(after) == canonical(decision.run), "fold and decide disagree"
        self.stored.append((stored, commit.version, f"c{commit.version}"))

    def ask(
        self, *bodies: Body, by: str = "ann", command: str | None = None, grants: Grants | None = None
    ) -> list[Outcome]:
        """Decides on the latest state and stores."""
        decision = decide_aggregate(
            self.key, self.read(), [Asked(b, by, command) for b in bodies], self.now, grants or Grants()
        )
        self.append(decision)
        return list(decision.outcomes)


def reason(outcome: Outcome) -> str:
    """The stable word of a refusal or of nothing to do; `accepted`."""
    return getattr(outcome, "reason", "accepted")


def refused(outcome: Outcome) -> bool:
    return isinstance(outcome, Refused)

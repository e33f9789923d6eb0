"""What telling a hook costs: `python -m bench.hooks`.

Printed is the CPU time for each stored commit that ends a step and begins the next, with nobody counting and with the
metrics of a walker, and what that makes of a message (seven commits, five steps, one pull) and of 4,000 commits/s.
"""

import argparse
import time
import timeit

import msgspec

from waybook.adapters.metrics.walker import WalkerMetrics
from waybook.engine.hooks import CommandsTaken, GroupSent, Hook, ignore
from waybook.engine.run import Action, Run
from waybook.events.commit import Commit
from waybook.events.engine import Claim, EngineEvent, EventPublished, StepBegan, StepCompleted, Transitioned
from waybook.events.subjects import RunKey
from waybook.services.walker.telling import tell_stored

STEPS = ("security_scan", "context_retrieval", "classify", "draft", "route")
COMMITS_S = 4_000
CLAIM = Claim(1, 1, 1)


class Costs(msgspec.Struct, frozen=True):
    """Microseconds for a commit, for the start of a message, and for a message as a whole."""

    commit_us: float
    start_us: float

    @property
    def message_us(self) -> float:
        return 5 * self.commit_us + 2 * self.start_us

    @property
    def share(self) -> float:
        """Of one core, at 4,000 commits/s."""
        return COMMITS_S * self.commit_us / 1e6


def step(number: int) -> tuple[Commit, Run]:
    """The commit that ends step `number` and begins the next, and the run with it."""
    events: tuple[EngineEvent, ...] = (
        EventPublished(event="Scanned", schema=1, payload=msgspec.Raw(b"{}"), action="1.1"),
        StepCompleted(action="1.1", outputs=(0,), duration_ms=3),
        Transitioned(row="scanned", from_state="received", to_state="scanned", on="Scanned"),
        StepBegan(
            action="2.3", step=STEPS[(number + 1) % 5], trigger="2.0", attempt=1, walk=1, bindings={}, command="c",
            claim=CLAIM, deadline=1,
        ),
    )  # fmt: skip
    action = Action("1.1", STEPS[number], "1.0", 1, 1, {}, "c", CLAIM, 0, 1)
    key = RunKey("main", "inbox", "r")
    run = Run(key=key, agent="inbox", definition="d", state="scanned", started_at=0, actions={"1.1": action})
    return Commit(version=2, walk=1, at=0, actor="w", definition="d", events=events), run


def measure(hook: Hook, count: int) -> Costs:
    """The best of nine rounds: what else the machine does is not the hook's."""
    cases = [step(number) for number in range(len(STEPS))]

    def commits() -> None:
        for commit, run in cases:
            tell_stored(hook, commit, run, 1500, 0.002)

    def start() -> None:
        hook(CommandsTaken("new_any", 16, 0))
        hook(GroupSent(40))

    def best(work: object, each: int) -> float:
        rounds = count // each
        return min(timeit.repeat(work, timer=time.process_time, number=rounds, repeat=9)) / rounds / each * 1e6  # type: ignore[arg-type]

    return Costs(best(commits, len(cases)), best(start, 1))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="commits a round (default %(default)s)")
    count = parser.parse_args().count
    print(f"{'':<10}{'us/commit':>11}{'us/message':>12}{f'of a core at {COMMITS_S:,} commits/s':>36}")
    for name, hook in (("nobody", ignore), ("metrics", WalkerMetrics({"inbox": STEPS}, ("new_any", "ctl_any")))):
        costs = measure(hook, count)
        print(f"{name:<10}{costs.commit_us:>11.2f}{costs.message_us:>12.1f}{costs.share:>36.2%}")


if __name__ == "__main__":
    main()

"""The claim rules under interleaved workers, lapsing leases, crashes and late words: nothing gets stuck, nothing runs twice."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.unit.engine.claims import rules
from tests.unit.engine.claims.driver import EVERYTHING, LEASES, play
from tests.unit.engine.claims.model import FRAIL, WALK, Model, Worker

from waybook.engine.definition import Definition

GAMES = 500
SEARCH = 4_000
PICKS = st.integers(0, 99)


class ClaimsMachine(RuleBasedStateMachine):
    """Any order of moves of three workers, one queue and one run; at the end it must come to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    @initialize(order=st.permutations(["start", "signal"]))
    def publish(self, order: list[str]) -> None:
        for command in order:
            self.model.publish(command)

    def worker(self, pick: int) -> Worker:
        return self.model.workers[pick % len(self.model.workers)]

    @precondition(lambda self: self.model.queue.waiting())
    @rule(message=PICKS, worker=PICKS)
    def deliver(self, message: int, worker: int) -> None:
        waiting = self.model.queue.waiting()
        self.model.deliver(self.worker(worker), waiting[message % len(waiting)])

    @precondition(lambda self: any(w.mailbox for w in self.model.workers))
    @rule(worker=PICKS, count=st.integers(1, 4), lost=st.booleans())
    def work(self, worker: int, count: int, lost: bool) -> None:
        busy = [w for w in self.model.workers if w.mailbox]
        self.model.work(busy[worker % len(busy)], count, lost=lost)

    @precondition(lambda self: any(any(w.bodies.values()) for w in self.model.workers))
    @rule(pick=PICKS)
    def finish(self, pick: int) -> None:
        running = [(w, a) for w in self.model.workers for a, runs in w.bodies.items() if runs]
        self.model.finish(*running[pick % len(running)])

    @precondition(lambda self: any(w.sendings for w in self.model.workers))
    @rule(worker=PICKS)
    def send(self, worker: int) -> None:
        sending = [w for w in self.model.workers if w.sendings]
        self.model.send(sending[worker % len(sending)])

    @precondition(lambda self: any(not m.waiting for m in self.model.queue.messages.values()))
    @rule(message=PICKS)
    def lapse(self, message: int) -> None:
        leased = [s for s, m in self.model.queue.messages.items() if not m.waiting]
        self.model.queue.lapse(leased[message % len(leased)])

    @rule(worker=PICKS)
    def look(self, worker: int) -> None:
        self.model.look(self.worker(worker))

    @rule(worker=PICKS)
    def crash(self, worker: int) -> None:
        self.model.crash(self.worker(worker))

    @rule(worker=PICKS)
    def stop(self, worker: int) -> None:
        self.model.stop(self.worker(worker))

    @rule()
    def recreate_consumer(self) -> None:
        self.model.recreate()

    @rule()
    def purge(self) -> None:
        self.model.purge()

    @rule(command=st.sampled_from(["start", "signal"]))
    def send_again(self, command: str) -> None:
        self.model.publish(command)

    @rule()
    def watchdog(self) -> None:
        self.model.publish_continue()

    def teardown(self) -> None:
        self.model.drain()


def test_any_interleaving_ends_with_nothing_stuck_and_nothing_run_twice() -> None:
    """Hypothesis searches for an order of moves that breaks a rule, and finds none."""
    plan = settings(max_examples=80, stateful_step_count=40, derandomize=True, deadline=None)
    run_state_machine_as_test(ClaimsMachine, settings=plan)


@pytest.mark.parametrize("mix", [EVERYTHING, LEASES], ids=["everything", "leases"])
@pytest.mark.parametrize("definition", [WALK, FRAIL], ids=["patient", "frail"])
def test_games_of_weighted_moves_end_with_nothing_stuck_and_nothing_run_twice(
    definition: Definition, mix: frozenset[str]
) -> None:
    """In the frail walk two lost workers of a step convict the command: the run then waits for a person, by name."""
    found = [(seed, str(v)) for seed in range(GAMES) if (v := play(seed, definition=definition, mix=mix)) is not None]
    assert found == []


@pytest.mark.parametrize("definition", [WALK, FRAIL], ids=["patient", "frail"])
def test_games_among_workers_of_two_versions_end_with_nothing_stuck_and_nothing_run_twice(
    definition: Definition,
) -> None:
    """Whichever version begins the run, the other moves its commands to the lane and dies in between."""
    found = [
        (seed, str(v)) for seed in range(GAMES) if (v := play(seed, definition=definition, mixed=True)) is not None
    ]
    assert found == []


@pytest.mark.parametrize(
    ("broken", "harm"),
    [
        (rules.AnyoneAbandons, "double"),
        (rules.CountAlone, "double"),
        (rules.UnorderedClaims, "double"),
        (rules.SentAgainTakesOver, "double"),
        (rules.LoserAcks, "stuck"),
        (rules.LoserBeats, "stuck"),
        (rules.AckAfterFirstCommit, "stuck"),
        (rules.AckAfterFirstCommit, "double"),
        (rules.BrokenGivesBack, "double"),
        (rules.SecondWalk, "double"),
        (rules.StartsWhatItSaw, "stuck"),
        (rules.ContinueNeverAsks, "double"),
        (rules.ExpiredBegins, "double"),
        (rules.AcksBeforeItMoves, "stuck"),
        (rules.StaysWithItsVersion, "stuck"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_model_finds_the_harm_of_a_rule_that_is_switched_off(broken: type[rules.Rules], harm: str) -> None:
    """Every rule is there for a reason: without it, a run gets stuck or a step runs twice."""
    assert first_game(broken, harm) is not None, f"{broken.__doc__}: no harm in {SEARCH} games"


def first_game(broken: type[rules.Rules], harm: str) -> int | None:
    """Seed of the first game in which the rule's absence shows as `harm`."""
    for seed in range(SEARCH):
        mixed = issubclass(broken, rules.AcksBeforeItMoves | rules.StaysWithItsVersion)
        violation: Any = play(seed, broken(), mix=EVERYTHING if mixed or seed % 2 else LEASES, mixed=mixed)
        if str(violation).startswith(harm):
            return seed
    return None

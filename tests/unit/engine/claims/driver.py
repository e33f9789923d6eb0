"""Random interleavings of the model from a seed: quick enough for thousands, the same on every machine."""

import random
from collections.abc import Callable

from tests.unit.engine.claims.model import WALK, Model, Violation, Worker
from tests.unit.engine.claims.rules import Rules

from waybook.engine.definition import Definition

MOVES = 45
FAULTS = 4
WEIGHTS = {
    "deliver": 10, "work": 12, "finish": 8, "send": 8, "look": 2,
    "lapse": 5, "crash": 2, "stop": 2, "recreate": 1, "purge": 1, "lost": 2, "continue": 1, "resend": 1,
}  # fmt: skip
EVERYTHING = frozenset(WEIGHTS)
LEASES = EVERYTHING - {"purge", "resend", "continue", "crash"}
"""Mixes of moves: with all faults, and with little else than deliveries that overlap."""


class Driver:
    """Plays moves that are possible, drawn by weight. At most `FAULTS` crashes, purges and the like a game."""

    def __init__(
        self, seed: int, rules: Rules | None = None, definition: Definition = WALK, *,
        mix: frozenset[str] = EVERYTHING, mixed: bool = False,
    ) -> None:  # fmt: skip
        self.random = random.Random(seed)
        self.model = Model(rules, definition, mixed=mixed)
        self.faults = FAULTS
        self.weights = {move: w for move, w in WEIGHTS.items() if move in mix}
        self.played: list[str] = []

    def play(self) -> None:
        """One game to its end. Raises Violation."""
        self.model.publish("start")
        self.model.publish("signal")
        for _ in range(MOVES):
            self.move(self.random.choices(list(self.weights), list(self.weights.values()))[0])
        self.model.drain()

    def move(self, name: str) -> None:
        moves: dict[str, Callable[[], None]] = {
            "deliver": self.deliver, "work": self.work, "lost": self.lost, "finish": self.finish, "send": self.send,
            "look": self.look, "lapse": self.lapse, "crash": self.crash, "stop": self.stop,
            "recreate": self.recreate, "purge": self.purge, "continue": self.publish_continue, "resend": self.resend,
        }  # fmt: skip
        self.played.append(name)
        moves[name]()

    def one(self, workers: list[Worker]) -> Worker | None:
        return self.random.choice(workers) if workers else None

    def deliver(self) -> None:
        waiting = self.model.queue.waiting()
        if waiting:
            sequence = self.random.choice(waiting)
            self.model.deliver(self.random.choice(self.model.takers(sequence)), sequence)

    def work(self, *, lost: bool = False) -> None:
        worker = self.one([w for w in self.model.workers if w.mailbox])
        if worker is not None:
            self.model.work(worker, self.random.randint(1, len(worker.mailbox)), lost=lost)

    def lost(self) -> None:
        self.work(lost=True)

    def finish(self) -> None:
        running = [(w, a) for w in self.model.workers for a, runs in w.bodies.items() if runs]
        if running:
            self.model.finish(*self.random.choice(running))

    def send(self) -> None:
        worker = self.one([w for w in self.model.workers if w.sendings])
        if worker is not None:
            self.model.send(worker)

    def look(self) -> None:
        self.model.look(self.random.choice(self.model.workers))

    def lapse(self) -> None:
        leased = [s for s, m in self.model.queue.messages.items() if not m.waiting]
        if leased:
            self.model.queue.lapse(self.random.choice(leased))

    def fault(self) -> bool:
        self.faults -= 1
        return self.faults >= 0

    def crash(self) -> None:
        if self.fault():
            self.model.crash(self.random.choice(self.model.workers))

    def stop(self) -> None:
        self.model.stop(self.random.choice(self.model.workers))

    def recreate(self) -> None:
        if self.fault():
            self.model.recreate()

    def purge(self) -> None:
        if self.fault():
            self.model.purge()

    def publish_continue(self) -> None:
        self.model.publish_continue()

    def resend(self) -> None:
        self.model.publish(self.random.choice(["start", "signal"]))


def play(
    seed: int, rules: Rules | None = None, definition: Definition = WALK, *,
    mix: frozenset[str] = EVERYTHING, mixed: bool = False,
) -> Violation | None:  # fmt: skip
    """The violation of one game, if any. `mixed`: one of the workers is of another version."""
    driver = Driver(seed, rules, definition, mix=mix, mixed=mixed)
    try:
        driver.play()
    except Violation as violation:
        return violation
    return None

"""The worker's rules, and what they look like when one of them is switched off.

`Rules` asks the engine's own pure functions. Every subclass breaks one rule and says what it leads to.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import msgspec

from waybook.engine import lease
from waybook.engine.inputs import Continue, Delivered, Input, Outcome
from waybook.engine.run import Run
from waybook.events.engine import Claim

T = TypeVar("T")


class Rules:
    """What the walker does (DESIGN 4, "Claims")."""

    abandons_others = False
    acks_at_once = False
    beats_when_silent = False

    def claim(self, claim: Claim, run: Run | None) -> Claim:
        return claim

    def gone(self, asked: frozenset[int], gone: frozenset[int], inputs: Sequence[Input]) -> frozenset[int]:
        """Rule 7: of the sequences `asked` for, those at which the queue holds nothing."""
        return gone

    def held(self, claim: Claim | None) -> Claim | None:
        """Rule 5: a redelivery is decided with the claim that this process holds already."""
        return claim

    def reconcile(
        self, run: Run | None, held: Mapping[str, Claim], here: Collection[str], begun: Collection[str]
    ) -> lease.Work:
        return lease.reconcile(run, held, here)

    def is_expired(self, run: Run | None, command: str, claim: Claim, *, broken: bool) -> bool:
        return lease.is_expired(run, command, claim, broken=broken)

    def settle(
        self, run: Run | None, command: str, claim: Claim, outcome: Outcome | None, *, broken: bool, patience_ms: int
    ) -> lease.Next:
        return lease.settle(run, command, claim, outcome, broken=broken, patience_ms=patience_ms)

    def give_back(
        self, run: Run | None, command: str, claim: Claim, *, broken: bool
    ) -> lease.GiveBack | lease.Ack | lease.Silent:
        return lease.give_back(run, command, claim, broken=broken)

    def moved(self, words: list[T]) -> list[T]:
        """The order in which a command is published to its run's lane and acknowledged."""
        return words


class AcksBeforeItMoves(Rules):
    """A command for a run of another version is acknowledged before it stands in its lane."""

    def moved(self, words: list[T]) -> list[T]:
        return words[::-1]


class StaysWithItsVersion(Rules):
    """A worker of another version drops the command instead of moving it to its lane."""

    def moved(self, words: list[T]) -> list[T]:
        return []


class UnorderedClaims(Rules):
    """Rule 3 without the order of claims: every delivery thinks itself the newest."""

    def claim(self, claim: Claim, run: Run | None) -> Claim:
        largest = max((a.claim.delivery for a in run.open_actions()), default=0) if run is not None else 0
        return msgspec.structs.replace(claim, delivery=max(claim.delivery, largest + 1))


class CountAlone(Rules):
    """Rule 2 without the consumer's creation time: the delivery count alone."""

    def claim(self, claim: Claim, run: Run | None) -> Claim:
        return msgspec.structs.replace(claim, consumer_created=0)


class LoserAcks(Rules):
    """Rule 3: the superseded worker acknowledges "its" command."""

    def settle(
        self, run: Run | None, command: str, claim: Claim, outcome: Outcome | None, *, broken: bool, patience_ms: int
    ) -> lease.Next:
        following = super().settle(run, command, claim, outcome, broken=broken, patience_ms=patience_ms)
        return lease.Ack() if following == lease.Silent() else following


class LoserBeats(Rules):
    """Rule 3: the superseded worker goes on with its heartbeats."""

    beats_when_silent = True


class AckAfterFirstCommit(Rules):
    """Rule 4: a command is acknowledged when its effect is stored, whatever runs under it."""

    acks_at_once = True


class BrokenGivesBack(Rules):
    """Rule 4: a stopping worker naks although its lease may have lapsed."""

    def give_back(
        self, run: Run | None, command: str, claim: Claim, *, broken: bool
    ) -> lease.GiveBack | lease.Ack | lease.Silent:
        return super().give_back(run, command, claim, broken=False)


class AnyoneAbandons(Rules):
    """Rule 1: who meets an open action that it does not run takes it for lost."""

    abandons_others = True

    def gone(self, asked: frozenset[int], gone: frozenset[int], inputs: Sequence[Input]) -> frozenset[int]:
        return asked


class ContinueNeverAsks(Rules):
    """Rule 7: `continue` takes every open action that does not run here for one without an owner."""

    def gone(self, asked: frozenset[int], gone: frozenset[int], inputs: Sequence[Input]) -> frozenset[int]:
        return asked if any(isinstance(i, Delivered) and isinstance(i.body, Continue) for i in inputs) else gone


class SentAgainTakesOver(Rules):
    """Rule 3: a command that stands in the queue twice is taken for a later delivery of one message."""

    def gone(self, asked: frozenset[int], gone: frozenset[int], inputs: Sequence[Input]) -> frozenset[int]:
        return gone if any(isinstance(i, Delivered) and isinstance(i.body, Continue) for i in inputs) else asked


class ExpiredBegins(Rules):
    """Rule 8: a delivery that lapsed while it waited in the process is walked all the same."""

    def is_expired(self, run: Run | None, command: str, claim: Claim, *, broken: bool) -> bool:
        return False


class SecondWalk(Rules):
    """Rule 5: a redelivery to the process that still walks the command is walked a second time."""

    def gone(self, asked: frozenset[int], gone: frozenset[int], inputs: Sequence[Input]) -> frozenset[int]:
        """Rule 7: of the sequences `asked` for, those at which the queue holds nothing."""
        return gone

    def held(self, claim: Claim | None) -> Claim | None:
        return None


class StartsWhatItSaw(Rules):
    """Bodies are started for what the own decision began only, not for what the stored run says."""

    def reconcile(
        self, run: Run | None, held: Mapping[str, Claim], here: Collection[str], begun: Collection[str]
    ) -> lease.Work:
        work = super().reconcile(run, held, here, begun)
        return lease.Work(tuple(a for a in work.start if a.id in begun), work.cancel)

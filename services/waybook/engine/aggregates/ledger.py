"""A ledger: amounts held and used under a cap. `@budget.<scope>-<day>` and `@sender.<digest>` are ledgers.

A decision that needs two aggregates reserves first: `Reserved` on the ledger, then the run's commit names the
reservation. What is held ends by itself at `expires`, unless it was used before. Where a rate is kept (`@sender`),
what was used counts until `expires` only, so that the cap holds for every window of that length.
"""

import msgspec

from waybook.engine.run import Run
from waybook.events import engine as e
from waybook.events.errors import InvalidInput
from waybook.events.subjects import RUN_TOKEN

RATE = "@sender"
"""Ledgers of this agent keep a rate, those of others a sum."""

LEDGERS = ("@budget", RATE)
"""The agents whose aggregates are ledgers."""

_HELD, _USED, _SETTLED = "held", "used", "settled"


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """An amount held for one execution of a run until `expires` (ms, UTC). `counts`: used, and counted till then."""

    amount: int
    expires: int
    counts: bool = False


class Ledger(msgspec.Struct, frozen=True):
    """What is held, by reservation; the sum of what was used for good; and how settled ones ended."""

    held: dict[str, Reservation] = {}
    used: int = 0
    settled: dict[str, str] = {}

    def taken(self, now: int) -> int:
        """What counts against the cap at `now`."""
        return self.used + sum(r.amount for r in self.held.values() if r.expires > now)

    def holds(self, run: str, execution: str, now: int) -> bool:
        """Whether the reservation stands at `now`, or was used: the decision that it was made for may go ahead."""
        name = reservation(run, execution)
        held = self.held.get(name)
        return self.settled.get(name) == "used" or (held is not None and held.expires > now)


def reservation(run: str, execution: str) -> str:
    """The name of the one reservation of an execution."""
    return f"{run}/{execution}"


def reservation_parts(name: str) -> tuple[str, str, str]:
    """Agent and run of the ledger, and the execution, of a reservation as an intent names it: `AGENT.RUN/EXECUTION`.

    Raises InvalidInput for what is no name of a reservation.
    """
    ledger, _, execution = name.partition("/")
    agent, _, run = ledger.partition(".")
    if agent not in LEDGERS or not RUN_TOKEN.fullmatch(run) or not execution:
        raise InvalidInput(f"reservation: {name!r} names none; give the `name` of what `Ledgers` charged")
    return agent, run, execution


def ledger_of(run: Run | None) -> Ledger:
    """The ledger of a folded aggregate; None: nothing was ever reserved."""
    if run is None:
        return Ledger()
    return Ledger(run.fields.get(_HELD, {}), run.fields.get(_USED, 0), run.fields.get(_SETTLED, {}))


def fold_reserved(run: Run, event: e.Reserved, name: str, at: int) -> None:
    key = reservation(event.run, event.execution)
    held: dict[str, Reservation] = dict(run.fields.get(_HELD, {}))
    settled: dict[str, str] = run.fields.get(_SETTLED, {})
    if run.agent == RATE:  # lives for ever, so it forgets; a budget ends with its day, and a late use is still counted
        held = {k: r for k, r in held.items() if r.expires > at}
        settled = {k: how for k, how in settled.items() if k in held}
    held[key] = Reservation(event.amount, event.expires)
    run.fields[_HELD] = held
    run.fields[_SETTLED] = {k: how for k, how in settled.items() if k != key} if key in settled else settled


def fold_spent(run: Run, event: e.Spent, name: str, at: int) -> None:
    run.fields[_USED] = run.fields.get(_USED, 0) + event.amount


def fold_settled(run: Run, event: e.ReservationSettled, name: str, at: int) -> None:
    key = reservation(event.run, event.execution)
    held = dict(run.fields.get(_HELD, {}))
    before = held.pop(key, None)
    if event.outcome == "used" and before is not None:
        if run.agent == RATE:
            held[key] = msgspec.structs.replace(before, counts=True)
        else:
            run.fields[_USED] = run.fields.get(_USED, 0) + before.amount
    run.fields[_HELD] = held
    run.fields[_SETTLED] = {**run.fields.get(_SETTLED, {}), key: event.outcome}

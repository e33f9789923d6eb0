"""Side effects that name what a ledger holds for them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.walker.office import Done, Go, Office, until
from tests.unit.walker.outside import Outside

from waybook.agents import Agent, Effects, step
from waybook.agents.effects import EffectRefused
from waybook.agents.ledgers import Ledgers, Reservation
from waybook.events.engine import OperationIntended
from waybook.events.errors import InvalidInput

PLAN: dict[str, Any] = {}
SEEN: list[str] = []


class Charging(Agent):
    """Its one step charges, does what the plan says to what it charged, and then makes the side effect."""

    name = "gated"

    @step
    async def first(self, go: Go, effects: Effects, ledgers: Ledgers) -> Done:
        reservation = await ledgers.rate("ann@customer.example", cap=1, within_s=1)
        assert reservation is not None
        name = await PLAN["meanwhile"](ledgers, reservation)
        try:
            await effects.run("mail", {}, reservation=name)
        except EffectRefused as refused:
            SEEN.append(refused.reason)
        except InvalidInput as invalid:
            SEEN.append(str(invalid))
        return Done()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    SEEN.clear()
    opened = Office()
    yield opened
    await opened.close()


async def made(office: Office, meanwhile: Any) -> int:
    """Walks the agent to its end; how often the other side was called."""
    outside, PLAN["meanwhile"] = Outside(), meanwhile
    await office.process("a", Charging, effects={"mail": outside}, clock_margin_ms=0)
    await office.start()
    await until(lambda: (run := office.run()) is not None and run.ended)
    return len(outside.calls)


async def test_what_is_held_is_named_in_the_intent(office: Office) -> None:
    async def nothing(ledgers: Ledgers, reservation: Reservation) -> str:
        return reservation.name

    assert await made(office, nothing) == 1 and SEEN == []
    (intent,) = [event for event in office.events() if isinstance(event, OperationIntended)]
    assert intent.reservation is not None and intent.reservation.startswith("@sender.")


@pytest.mark.parametrize("way", ["given back", "run out", "of another ledger", "of another execution"])
async def test_what_is_no_longer_held_begins_no_side_effect(office: Office, way: str) -> None:
    """The ledger is asked, by the leader's word, in the decision that would commit the intent: the amount may be another's
    by now."""

    async def meanwhile(ledgers: Ledgers, reservation: Reservation) -> str:
        if way == "given back":
            await ledgers.release(reservation)
        elif way == "run out":
            office.clock.advance(1_000)
        names = {"of another ledger": "@budget.replies-1/x", "of another execution": f"{reservation.name}x"}
        return names.get(way, reservation.name)

    assert await made(office, meanwhile) == 0
    assert SEEN == ["reservation_gone"] and "OperationIntended" not in office.types()


@pytest.mark.parametrize("name", ["", "mine", "@policy._/x", "@budget.a b/x", "@budget.a/"])
async def test_what_names_no_reservation_is_refused_in_the_body_with_the_way_out(office: Office, name: str) -> None:
    async def meanwhile(ledgers: Ledgers, reservation: Reservation) -> str:
        return name

    assert await made(office, meanwhile) == 0
    assert [f"reservation: {name!r} names none; give the `name` of what `Ledgers` charged"] == SEEN

"""Ledgers: what is reserved and used never exceeds the cap, whoever asks and in whatever order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.aggregates.shared import Log, Stale, reason

from waybook.engine.aggregates.decide import decide_aggregate
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.requests import Asked, Body, Reserve, SettleReservation
from waybook.engine.run import Run

CAP = 5
HOUR = 3_600_000


def reserve(log: Log, execution: str, *, amount: int = 1, cap: int = CAP, life: int = HOUR) -> Reserve:
    return Reserve("r1", execution, cap, log.now + life, amount)


def test_what_is_over_the_cap_is_refused_and_leaves_nothing() -> None:
    """A refusal appends nothing; what was given back may be taken again."""
    log = Log("@budget", "send-1")
    assert [reason(o) for o in log.ask(*(reserve(log, f"e{n}") for n in range(6)))] == ["accepted"] * 5 + [
        "cap_reached"
    ]
    assert len(log.stored) == 1
    assert reason(log.ask(reserve(log, "e7"))[0]) == "cap_reached" and len(log.stored) == 1
    log.ask(SettleReservation("r1", "e0", "released"))
    assert reason(log.ask(reserve(log, "e7"))[0]) == "accepted"


def test_a_reservation_is_one_of_its_execution() -> None:
    """Asking again finds the first one, also after it was used; what was given back can be reserved anew."""
    log = Log("@budget", "send-1")
    log.ask(reserve(log, "e"))
    assert reason(log.ask(reserve(log, "e", amount=3))[0]) == "already_there"
    log.ask(SettleReservation("r1", "e", "used"))
    assert reason(log.ask(reserve(log, "e"))[0]) == "already_there"
    assert reason(log.ask(SettleReservation("r1", "e", "used"))[0]) == "applied"
    assert reason(log.ask(SettleReservation("r1", "e", "released"))[0]) == "already_settled"
    assert ledger_of(log.read()).taken(log.now) == 1


def test_what_nobody_used_ends_by_itself() -> None:
    """At `expires` an amount is free again; a use that comes later is a fact and counts all the same."""
    log = Log("@budget", "send-1")
    log.ask(*(reserve(log, f"e{n}") for n in range(5)))
    ledger = ledger_of(log.read())
    assert ledger.holds("r1", "e0", log.now + HOUR - 1) and not ledger.holds("r1", "e0", log.now + HOUR)
    log.now += HOUR
    assert ledger_of(log.read()).taken(log.now) == 0
    assert reason(log.ask(SettleReservation("r1", "e0", "used"))[0]) == "accepted"
    assert [reason(o) for o in log.ask(*(reserve(log, f"f{n}") for n in range(5)))].count("accepted") == 4


def test_a_rate_counts_what_was_used_until_its_window_ends() -> None:
    """`@sender` forgets: the cap holds for every window of that length, and the state stays small."""
    log = Log("@sender", "s")
    for n in range(3):
        log.ask(reserve(log, f"e{n}", cap=3, life=60_000))
        log.ask(SettleReservation("r1", f"e{n}", "used"))
        log.now += 10_000
    assert reason(log.ask(reserve(log, "x", cap=3, life=60_000))[0]) == "cap_reached"
    log.now += 30_000
    assert reason(log.ask(reserve(log, "x", cap=3, life=60_000))[0]) == "accepted"
    for n in range(50):
        log.now += 60_000
        assert reason(log.ask(reserve(log, f"y{n}", cap=3, life=60_000))[0]) == "accepted"
    ledger = ledger_of(log.read())
    assert len(ledger.held) <= 2 and len(ledger.settled) <= 2


MOVES = st.tuples(
    st.sampled_from(["read", "reserve", "reserve", "reserve", "use", "release", "pass"]),
    st.integers(0, 1),  # which writer
    st.integers(0, 11),  # which execution
    st.integers(1, 3),  # amount
)


@settings(max_examples=200, deadline=None)
@given(st.lists(MOVES, max_size=40))
def test_two_writers_never_take_more_than_the_cap(moves: list[tuple[str, int, int, int]]) -> None:
    """In every interleaving of two writers with stale states; what is used in time and what is held stay under it."""
    log = Log("@budget", "send-1")
    seen: list[Run | None] = [None, None]
    granted: dict[str, int] = {}
    for kind, writer, number, amount in moves:
        execution = f"e{number}"
        if kind == "pass":
            log.now += HOUR // 4
        elif kind == "read":
            seen[writer] = log.read()
        else:
            _try(log, seen, writer, _body(log, kind, execution, amount))
        run = log.read()
        ledger = ledger_of(run)
        assert ledger.taken(log.now) <= CAP
        for name in ledger.held:
            assert granted.setdefault(name, ledger.held[name].expires) <= ledger.held[name].expires


def _body(log: Log, kind: str, execution: str, amount: int) -> Body | None:
    if kind == "reserve":
        return reserve(log, execution, amount=amount)
    held = ledger_of(log.read()).held.get(f"r1/{execution}")
    if held is None or held.expires <= log.now:
        return None  # its owner knows that it ended
    return SettleReservation("r1", execution, "used" if kind == "use" else "released")


def _try(log: Log, seen: list[Run | None], writer: int, body: Body | None) -> None:
    """Decides on what this writer saw last; a conflict makes it read and decide again, as every writer does."""
    if body is None:
        return
    for _ in range(2):
        decision = decide_aggregate(log.key, seen[writer], [Asked(body)], log.now)
        try:
            log.append(decision)
        except Stale:
            seen[writer] = log.read()
            continue
        seen[writer] = log.read()
        return

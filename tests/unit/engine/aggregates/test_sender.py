"""Senders: how fast their messages begin, whether they are read at all, and what may leave for them unattended."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.aggregates.shared import Log, reason

from waybook.engine.aggregates.outcomes import Counts, spans_of
from waybook.engine.aggregates.requests import Admit, BlockSender, Learn, TrustSender
from waybook.engine.aggregates.sender import KEPT_MS, MINUTE_MS, sender_of
from waybook.events import engine as e

ARRIVALS = st.lists(st.integers(0, 20_000), min_size=1, max_size=60)


def admitted(gaps: list[int], per_minute: int, burst: int) -> list[tuple[int, int]]:
    """When each came, and when it may begin."""
    log = Log("@sender", "s")
    found = []
    for number, gap in enumerate(gaps):
        log.now += gap
        log.ask(Admit(f"r{number}", per_minute, burst))
        found.append((log.now, sender_of(log.read()).arrivals[f"r{number}"]))
    return found


@settings(deadline=None)
@given(ARRIVALS, st.integers(1, 120), st.integers(1, 30))
def test_no_more_begin_within_a_time_than_a_burst_and_the_rate_allow(
    gaps: list[int], per_minute: int, burst: int
) -> None:
    """In every span of time at most a burst and what the rate allows of it begin; nobody is turned away."""
    begins = [at for _, at in admitted(gaps, per_minute, burst)]
    for first, start in enumerate(begins):
        for last in range(first, len(begins)):
            allowed = burst + (begins[last] - start) * per_minute / MINUTE_MS
            assert last - first + 1 <= allowed + 1.01


@settings(deadline=None)
@given(ARRIVALS, st.integers(1, 120), st.integers(1, 30))
def test_arrivals_begin_in_their_order_and_never_before_they_came(gaps: list[int], per_minute: int, burst: int) -> None:
    """What came first begins first, and who keeps to the rate never waits."""
    found = admitted(gaps, per_minute, burst)
    begins = [at for _, at in found]
    assert begins == sorted(begins) and all(at >= came for came, at in found)
    slow = admitted([MINUTE_MS // per_minute + 1] * len(gaps), per_minute, burst)
    assert all(at == came for came, at in slow)


def test_a_burst_passes_and_the_rest_waits_its_turn() -> None:
    """25 at once, ten a minute after twenty: five wait, the last of them half a minute."""
    found = admitted([0] * 25, 10, 20)
    waits = [at - came for came, at in found]
    assert waits == [0] * 20 + [6_000, 12_000, 18_000, 24_000, 30_000]


def test_an_arrival_that_is_told_again_keeps_its_place() -> None:
    """A start may be delivered twice; it takes one place, and that is remembered for a while."""
    log = Log("@sender", "s")
    assert reason(log.ask(Admit("r1", 1, 1))[0]) == "accepted"
    assert reason(log.ask(Admit("r1", 1, 1))[0]) == "already_there"
    log.ask(Admit("r2", 1, 1))
    log.now += KEPT_MS + MINUTE_MS + 1
    log.ask(Admit("r3", 1, 1))
    assert set(sender_of(log.read()).arrivals) == {"r3"}


def test_a_block_and_distrust_stand_until_a_person_lifts_them() -> None:
    """Whoever says it again changes nothing; trust is kept by category."""
    log = Log("@sender", "s")
    blocked = e.SenderBlockSet(on=True, by="ann", run="r1")
    assert [reason(o) for o in log.ask(Learn(blocked), Learn(blocked))] == ["accepted", "already_there"]
    bad = e.SenderTrustSet(category="support", trusted=False, by="engine", reason="bounced", run="r1")
    assert [reason(o) for o in log.ask(Learn(bad), Learn(bad))] == ["accepted", "already_there"]
    known = sender_of(log.read())
    assert known.block.on and known.block.by == "ann" and known.distrust["support"].run == "r1"
    log.ask(BlockSender(False, "a mistake"), TrustSender("support", True, "a full mailbox"))
    known = sender_of(log.read())
    assert not known.block.on and not known.distrust
    assert reason(log.ask(TrustSender("", True))[0]) == "invalid_input"


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["sent", "bounced", "complained"]), st.integers(0, 5))))
def test_each_end_of_a_reply_counts_once(told: list[tuple[str, int]]) -> None:
    """However often a run tells of it."""
    log = Log("@outcomes", "replies-1")
    for kind, run in told:
        log.ask(Learn(e.OutcomeCounted(kind=kind, run=f"r{run}", at=log.now)))  # type: ignore[arg-type]
    total = sum(spans_of(log.read()).values(), Counts())
    kinds = [kind for kind, _ in set(told)]
    assert (total.sent, total.bounced, total.complained) == tuple(
        kinds.count(k) for k in ("sent", "bounced", "complained")
    )

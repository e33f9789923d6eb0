"""The circuit breaker: when it opens, what leaves on trial, how it closes."""

from hypothesis import given
from hypothesis import strategies as st

from waybook.engine.aggregates.outcomes import SPAN_MS, Counts
from waybook.inbox.breaker import Breaker, BreakerSettings, breaker

SETTINGS = BreakerSettings(bounces=0.1, complaints=0.02, least=3, window_hours=24, rest_minutes=60, trials=3)
REST = SETTINGS.rest
COUNTS = st.builds(Counts, st.integers(0, 20), st.integers(0, 2), st.integers(0, 1))
SPANS = st.dictionaries(st.integers(0, 400), COUNTS, max_size=40)


def at(spans: dict[int, Counts], span: int, settings: BreakerSettings = SETTINGS) -> Breaker:
    return breaker(spans, settings, span * SPAN_MS)


def test_it_opens_at_the_share_of_bounces_and_not_before() -> None:
    """Three of thirty are a tenth; two are too few to say anything; three of forty are not enough."""
    assert at({5: Counts(sent=30, bounced=3)}, 5).kind == "open"
    assert at({5: Counts(sent=2, bounced=2)}, 5).kind == "closed"
    assert at({5: Counts(sent=40, bounced=3)}, 5).kind == "closed"


def test_complaints_weigh_more_than_bounces() -> None:
    """Three of a hundred and fifty called spam are enough."""
    assert at({5: Counts(sent=150, complained=3)}, 5).kind == "open"
    assert at({5: Counts(sent=151, complained=3)}, 5).kind == "closed"


def test_what_lies_behind_the_window_counts_no_more() -> None:
    spans = {5: Counts(sent=30, bounced=2), 5 + SETTINGS.window: Counts(sent=1, bounced=1)}
    assert at(spans, 5 + SETTINGS.window).kind == "closed"
    assert at({**spans, 6: Counts(bounced=1)}, 6).kind == "open"


def test_after_a_rest_a_few_leave_on_trial() -> None:
    spans = {5: Counts(sent=30, bounced=3)}
    assert at(spans, 4 + REST).kind == "open" and at(spans, 5 + REST).trials_left == 3
    used = at({**spans, 6 + REST: Counts(sent=2)}, 7 + REST)
    assert (used.kind, used.trials_left) == ("half_open", 1)
    assert at({**spans, 6 + REST: Counts(sent=9)}, 7 + REST).trials_left == 0


def test_one_more_bad_end_on_trial_opens_it_anew() -> None:
    spans = {5: Counts(sent=30, bounced=3), 6 + REST: Counts(sent=1, bounced=1)}
    assert at(spans, 6 + REST).kind == "open" and at(spans, 5 + 2 * REST).kind == "open"
    assert at(spans, 6 + 2 * REST).kind == "half_open"


def test_it_closes_when_the_trials_left_and_a_rest_passed_well_and_forgets_what_opened_it() -> None:
    """A single bad end afterwards does not add to the old ones."""
    spans = {5: Counts(sent=30, bounced=3), 6 + REST: Counts(sent=3)}
    assert at(spans, 4 + 2 * REST).kind == "half_open" and at(spans, 5 + 2 * REST).kind == "closed"
    later = {**spans, 5 + 3 * REST: Counts(sent=5, bounced=2)}
    assert at(later, 5 + 3 * REST).kind == "closed"


@given(SPANS, st.integers(0, 420))
def test_without_a_bad_end_it_never_opens(spans: dict[int, Counts], now: int) -> None:
    good = {span: Counts(sent=counts.sent) for span, counts in spans.items()}
    assert at(good, now).kind == "closed"


@given(SPANS, st.integers(0, 420))
def test_what_comes_later_changes_nothing_before(spans: dict[int, Counts], now: int) -> None:
    """How it stood at a moment is the same whenever it is asked for."""
    known = {span: counts for span, counts in spans.items() if span <= now}
    assert at(spans, now) == at(known, now)


@given(SPANS, st.integers(0, 420))
def test_an_open_breaker_ends_by_itself(spans: dict[int, Counts], now: int) -> None:
    """With nothing more to count it lets trials leave after one rest."""
    known = {span: counts for span, counts in spans.items() if span <= now}
    assert at(known, now + REST).kind != "open"

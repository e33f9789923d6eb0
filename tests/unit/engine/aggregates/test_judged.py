"""What people made of drafts: a scorecard of each sender, and thresholds that refusals raise."""

from tests.unit.engine.aggregates.shared import Log, reason

from waybook.engine.aggregates.judged import judged_of, matched_of
from waybook.engine.aggregates.keys import DAY_MS
from waybook.engine.aggregates.requests import Learn, SetThreshold
from waybook.events import engine as e
from waybook.events.aggregate import Verdict

AGREED: tuple[Verdict, ...] = ("approved",)
REFUSED: tuple[Verdict, ...] = ("rejected",)


def told(log: Log, *verdicts: Verdict, matched: bool = False) -> None:
    for number, verdict in enumerate(verdicts):
        fact = e.ReplyJudged(category="support", verdict=verdict, run=f"r{number}", at=log.now, matched=matched)
        log.ask(Learn(fact))


def level(log: Log) -> int:
    return judged_of(log.read()).level


def test_a_week_of_refusals_raises_a_threshold_by_one_step_and_a_person_lowers_it() -> None:
    """Above four in ten of five at least, once a week; nobody but a person takes it back."""
    log = Log("@category", "support")
    told(log, "rejected", "rejected", "rejected", "rejected")
    assert level(log) == 0
    told(log, "approved")
    assert level(log) == 1
    told(log, "rejected", "rejected")
    assert level(log) == 1
    log.now += 7 * DAY_MS
    told(log, *REFUSED * 5)
    assert level(log) == 2
    log.now += 30 * DAY_MS
    told(log, *AGREED * 9)
    assert level(log) == 2
    assert reason(log.ask(SetThreshold(0, "they are good now"))[0]) == "accepted" and level(log) == 0
    assert reason(log.ask(SetThreshold(0))[0]) == "already_there"


def test_four_refusals_in_ten_raise_nothing() -> None:
    log = Log("@category", "support")
    told(log, *AGREED * 6, *REFUSED * 4)
    assert level(log) == 0


def test_a_sender_s_card_counts_what_people_agreed_with() -> None:
    log = Log("@sender", "s")
    told(log, "approved", "approved", matched=True)
    told(log, "rejected", "edited")
    assert matched_of(log.read()) == {"support": 2} and matched_of(None) == {}

"""An aggregate that was kept as a snapshot is what its history folds to, and decides the same."""

from tests.unit.engine.aggregates.shared import Log

from waybook.engine.aggregates.judged import judged_of, matched_of
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.outcomes import Counts, spans_of
from waybook.engine.aggregates.requests import (
    Admit,
    BlockSender,
    Body,
    ChangeGrant,
    Learn,
    Reserve,
    SetKillSwitch,
    SetThreshold,
    SettleReservation,
    TrustSender,
)
from waybook.engine.aggregates.sender import sender_of
from waybook.engine.run import Run
from waybook.engine.snapshot import pack, state_of, unpack
from waybook.events import engine as e


def kept(agent: str, *asked: Body) -> tuple[Log, Run]:
    log = Log(agent)
    log.ask(*asked)
    run = log.read()
    assert run is not None
    again = unpack(pack(state_of(run), run, "c"), log.key, "c")
    assert again is not None and again.fields == run.fields
    return log, again


def test_every_aggregate_is_read_back_as_it_was() -> None:
    """Amounts held, blocks, counts, scorecards, grants and the kill switch keep their types."""
    judged = Learn(e.ReplyJudged(category="support", verdict="approved", run="r", at=1, matched=True))
    log, budget = kept("@budget", Reserve("r", "e", 5, 10**15), Reserve("r", "f", 5, 10**15))
    assert ledger_of(budget).taken(log.now) == 2
    log, sender = kept(
        "@sender", Admit("r", 10, 1), BlockSender(True), TrustSender("support", False),
        Reserve("r", "e", 5, 10**15), SettleReservation("r", "e", "used"), judged,
    )  # fmt: skip
    assert sender_of(sender).block.on and ledger_of(sender).taken(log.now) == 1
    assert matched_of(sender) == {"support": 1}
    _, category = kept("@category", judged, SetThreshold(2))
    assert judged_of(category).level == 2 and judged_of(category).week(1).approved == 1
    _, outcomes = kept("@outcomes", Learn(e.OutcomeCounted(kind="sent", run="r", at=1)))
    assert sum(spans_of(outcomes).values(), Counts()) == Counts(sent=1)
    kept("@policy", SetKillSwitch(True))
    kept("@grants", ChangeGrant("ann", ("*",)))

"""Whatever people, workers and timers do in whatever order: what holds of every approval."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.engine import laws, plays
from tests.unit.engine.history import History, output
from tests.unit.engine.signed import DESK, FREE, REPORT, REPORTING, Signed

from waybook.engine import approvals
from waybook.engine.fold import apply
from waybook.engine.inputs import Completed, Decide, Input, Signal
from waybook.engine.run import Run
from waybook.events import engine as e

DECISIONS = st.tuples(
    st.just("decide"),
    st.sampled_from(["approved", "approved", "rejected", "revoked"]),
    st.integers(0, 3),
    st.integers(-1, 1),
)
SAVES = st.tuples(st.just("save"), st.sampled_from(["", "one", "two"]))
ASKS = st.tuples(st.just("ask"), st.integers(0, 3))
MOVES = st.lists(st.one_of(plays.draws(), DECISIONS, DECISIONS, SAVES, ASKS), min_size=1, max_size=25)


def _meaning(history: Signed, move: object) -> Input | None:
    if isinstance(move, plays.Draw):
        return plays.meaning(history, move)
    if history.run is None:
        return plays.meaning(history, plays.Draw("start", 0, 0))
    assert isinstance(move, tuple)
    if move[0] == "save":
        return history.command(Signal(output("Saved", text=move[1])), person=True)
    if move[0] == "ask":
        return _ask(history, move[1])
    names = [None, *history.it.approvals]
    name = names[move[2] % len(names)]
    expires = [a.request.expires for a in history.it.approvals.values() if a.request.expires is not None]
    received = (max(expires) + move[3]) if expires and move[2] % 2 else history.now
    return history.command(Decide(move[1], name), person=True, by="ann", received_at=received)


def _ask(history: Signed, number: int) -> Input | None:
    action = next((a for a in history.it.open_actions() if a.step == "write" and a.status == "running"), None)
    if action is None:
        return None
    contract = replace(REPORT, digest=f"d{number}", within_ms=None if number == 3 else 1_000)
    return Completed(action.id, (output("Report"),), contracts=(contract,) * (number % 3))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([DESK, REPORTING]), MOVES)
def test_every_history_keeps_the_laws_of_approvals(definition: object, moves: list[object]) -> None:
    """One decision each, none after a revocation, a deadline exactly while it stands; and all laws of runs."""
    history = Signed(definition)  # type: ignore[arg-type]
    for move in moves:
        one = _meaning(history, move)
        if one is None:
            continue
        before = len(history.stored)
        outcome = history.apply(one, world=FREE)[0]
        assert not hasattr(outcome, "text") or len(history.stored) == before, "a refusal leaves no trace"
    laws.check(history)
    _check(history)


def _check(history: History) -> None:
    run: Run | None = None
    for commit, _, _ in history.stored:
        for index, event in enumerate(commit.events):
            if run is not None:
                _check_event(run.copy(), event)
            run = apply(run, event, f"{commit.version}.{index}", commit.at, history.key)
        assert run is not None
        _check_deadlines(run)


def _check_event(run: Run, event: e.EngineEvent) -> None:
    if isinstance(event, e.ApprovalDecided):
        approval = run.approvals[event.approval]
        assert approval.decided is None and approval.revoked is None and approval.used_by is None
        assert approval.request.expires is None or event.received_at < approval.request.expires
    elif isinstance(event, e.ApprovalRevoked):
        approval = run.approvals[event.approval]
        assert approval.revoked is None and approval.used_by is None


def _check_deadlines(run: Run) -> None:
    about = [t.about for t in run.timers.values() if t.about.startswith(approvals.ABOUT)]
    assert len(about) == len(set(about))
    standing = {
        f"{approvals.ABOUT}{name}"
        for name, a in run.approvals.items()
        if a.revoked is None and a.used_by is None and a.request.expires is not None
        and (a.decided is None or a.decided.decision == "approved")
    }  # fmt: skip
    assert set(about) == standing
    if run.ended:
        assert approvals.open_approvals(run) == {}

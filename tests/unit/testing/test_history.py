"""Each way in which a history can be illegal is found out."""

from collections.abc import Sequence

import pytest

from waybook.engine.definition import default_table
from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.testing.history import completed, illegalities

TABLE = default_table()
FIRST, SECOND = e.Claim(1, 1, 1), e.Claim(1, 1, 2)
STARTED = e.RunStarted(agent="a", definition="d", state="running")
COMPLETED = e.StepCompleted(action="1.1", outputs=(), duration_ms=1)
LOST = e.ActionAbandoned(action="1.1", reason="lost", failures=1)
ENDED = e.Transitioned(row="complete", from_state="running", to_state="completed", on="StopEvent")


def began(action: str = "1.1", attempt: int = 1, claim: e.Claim = FIRST, trigger: str = "1.0") -> e.StepBegan:
    return e.StepBegan(
        action=action, step="s", trigger=trigger, attempt=attempt, walk=1, bindings={}, command="c", claim=claim, deadline=9
    )  # fmt: skip


def history(*commits: Sequence[e.EngineEvent], first: int = 1, commands: tuple[str, ...] = ()) -> list[Commit]:
    return [
        Commit(version=number, walk=1, at=0, actor="w", definition="d", events=tuple(events), commands=commands)
        for number, events in enumerate(commits, first)
    ]


def test_a_walk_with_a_lost_attempt_is_legal() -> None:
    walked = history((STARTED, began()), (LOST, began("2.1", 2, SECOND)), (completion("2.1"), ENDED))
    assert illegalities(TABLE, walked) == []
    assert completed(walked) == ["1:s:1.0"]


def completion(action: str) -> e.StepCompleted:
    return e.StepCompleted(action=action, outputs=(), duration_ms=1)


def test_a_released_attempt_is_followed_by_the_next_and_not_completed() -> None:
    released = e.ActionReleased(action="1.1", reason="stop")
    assert illegalities(TABLE, history((STARTED, began()), (released,)), ended=False) == []
    assert illegalities(TABLE, history((STARTED, began()), (released, began("2.1", 2)), (completion("2.1"),))) == []
    [wrong] = illegalities(TABLE, history((STARTED, began()), (released,), (COMPLETED,)), ended=False)
    assert "not under way" in wrong


@pytest.mark.parametrize(
    ("commits", "says"),
    [
        (history((STARTED,), first=2), "version 2 stands where 1 belongs"),
        (history((STARTED,), (LOST,), commands=("c",)), "applied twice"),
        (history((began(),)), "before RunStarted"),
        (history((STARTED, STARTED)), "started twice"),
        (history((STARTED, began())), "never ended"),
        (history((STARTED, began(), COMPLETED, COMPLETED)), "not under way"),
        (history((STARTED, began(), COMPLETED, began("1.3", 2))), "began again after its completion"),
        (history((STARTED, began(), began("1.2", 2), completion("1.2"))), "while attempt 1.1 was under way"),
        (history((STARTED, began(attempt=2), COMPLETED)), "attempt 2 of 1:s:1.0 follows 0"),
        (history((STARTED, began(claim=SECOND), LOST, began("1.3", 2, FIRST), completion("1.3"))), "comes after"),
        (history((STARTED, e.LeaseRenewed(actions=("9.9",), claim=FIRST))), "lease of 9.9"),
        (history((STARTED, ENDED, ENDED)), "the run is completed"),
        (history((STARTED, ENDED, e.RunEnded(outcome="completed"), began("1.3"), completion("1.3"))), "began while"),
        (
            history((STARTED, e.Transitioned(row="fail", from_state="running", to_state="completed", on="x"))),
            "no row fail",
        ),
    ],
)  # fmt: skip
def test_what_is_illegal_is_named(commits: list[Commit], says: str) -> None:
    assert any(says in wrong for wrong in illegalities(TABLE, commits))

"""Who waits for a person says with which command the person answers."""

from waybook.cli.ways_out import ways_out
from waybook.engine.hold import Hold, Waiting, Why
from waybook.engine.stall import OpenRequest

APPROVAL = Waiting(
    approval="2.0", action="shop", resource="shop:lamp", digest="d", deciders=(), grant="decide:shop", until=None, summary=None
)  # fmt: skip


def asked(agent: str = "buyer", *, reason: str | None = None, **about: object) -> list[str]:
    return list(ways_out("r1", agent, Why("running", Hold("none", reason), "", **about)))  # type: ignore[arg-type]


def test_a_question_names_the_events_that_answer_it() -> None:
    told = asked(requests=(OpenRequest("2.1", "Ask"),), answers=("Reply",))
    assert told == ["asks   Ask 2.1; answer: waybook signal r1 Reply --agent buyer --request 2.1 --data JSON"]
    several = asked(requests=(OpenRequest("2.1", "Ask"),), answers=("Reply", "Refusal"))
    assert "signal r1 Reply|Refusal --agent" in several[0]


def test_what_another_agent_works_on_is_nothing_for_a_person() -> None:
    assert asked(requests=(OpenRequest("2.1", "AgentRequest", "finder", "c1"),)) == []


def test_an_approval_names_its_agent_unless_it_is_the_usual_one() -> None:
    assert asked(approvals=(APPROVAL,)) == [
        "asks   shop on shop:lamp: waybook approve r1/2.0 --agent buyer (or reject)"
    ]
    assert asked("inbox", approvals=(APPROVAL,)) == ["asks   shop on shop:lamp: waybook approve r1/2.0 (or reject)"]


def test_an_unknown_outcome_and_a_step_out_of_attempts_name_what_settles_them() -> None:
    told = asked(unsettled=("buy/shop/buy/1",), reason="exhausted")
    assert told[0].startswith(
        "asks   did it happen? waybook settle r1 buy/shop/buy/1 --agent buyer --arrived|--not-arrived"
    )
    assert told[1] == "asks   waybook retry|cancel r1 --agent buyer"

"""Agents played in memory: contexts, preconditions, configuration, deadlines, other agents, late results."""

import asyncio

import pytest
from tests.unit.agents import stages as st

from waybook.agents.errors import DefinitionError, NotPure
from waybook.agents.mermaid import mermaid
from waybook.agents.picture import picture
from waybook.agents.run_context import RunContext
from waybook.agents.svg import svg
from waybook.testing.rehearsal import Refused, rehearsal


async def test_a_precondition_that_raises_fails_the_run_and_a_retry_asks_again() -> None:
    """The error is told with the step's name; what was not looked at waits, and goes on when the cause is gone."""
    st.Divides.by = 0
    async with rehearsal(st.Divides) as stage:
        run = await stage.start(st.Go())
        await stage.signal(run, st.Number(value=1))
        assert stage.state(run) == "failed"
        assert "ZeroDivisionError" in str(stage.why(run).error) and "divide" in str(stage.why(run).error)
        await stage.signal(run, st.Number(value=2))
        st.Divides.by = 1
        await stage.retry(run)
        assert stage.steps(run) == ["begin", "divide", "divide"]
        assert stage.state(run) == "running"


async def test_a_precondition_that_waits_fails_the_run() -> None:
    """It is asked in the middle of a decision."""
    async with rehearsal(st.Impatient) as stage:
        run = await stage.start(st.Go())
        assert stage.state(run) == "failed"
        assert NotPure.__name__ in str(stage.run(run).gate_failure)


async def test_a_precondition_changes_no_context() -> None:
    """It may look only."""
    async with rehearsal(st.Meddles) as stage:
        run = await stage.start(st.Go())
        assert "ReadOnlyContext" in str(stage.run(run).gate_failure)
        assert stage.run(run).context == {}


async def test_configuration_that_does_not_fit_ends_the_run_at_once() -> None:
    """Visibly, with the field that is wrong, before any step."""
    async with rehearsal(st.Configured) as stage:
        run = await stage.start(st.Go())
        assert stage.state(run) == "failed"
        assert "size" in str(stage.run(run).reason)
        assert stage.steps(run) == []


async def test_a_step_gets_what_it_asks_for_by_type() -> None:
    """Agent configuration, step configuration, identity, and a thread of its own."""
    async with rehearsal(st.Configured) as stage:
        run = await stage.start(st.Go(), config=st.Size(size=3), user="ada")
        assert stage.result(run) == st.Told(text="3 4 ada 1")
        again = await stage.start(st.Go(), config=st.Size(size=3))
        assert stage.result(again) == st.Told(text="3 4 nobody 1")


async def test_display_events_tell_attempt_and_place() -> None:
    """So that a reader can go on where it was, and nothing stands there twice."""
    async with rehearsal(st.Shows) as stage:
        run = await stage.start(st.Go())
        await stage.pass_time(301)
        shown = [(s["attempt"], s["offset"], s["event"]) for s in stage.shown(run)]
        assert shown == [(1, 0, "Chunk"), (2, 0, "Chunk"), (2, 1, "Chunk")]
        assert stage.events(run, st.Chunk) == []


async def test_a_late_result_is_thrown_away_and_nothing_is_raised_into_the_body() -> None:
    """The run ends beside a body, which finishes undisturbed."""
    st.Slow.may_end = asyncio.Event()
    st.Slow.ended = []
    async with rehearsal(st.Slow) as stage:
        run = await stage.start(st.Go())
        assert stage.state(run) == "completed"
        st.Slow.may_end.set()
        await stage.rest()
        assert st.Slow.ended == ["undisturbed"]
        assert [p.event for p in stage.run(run).log] == ["Go", "Told"]


async def test_a_second_answer_is_refused() -> None:
    """The first one wins, while the run goes on."""
    async with rehearsal(st.Asks) as stage:
        run = await stage.start(st.Go())
        request = stage.requests(run)[0].name
        await stage.signal(run, st.Number(value=1), request=request)
        with pytest.raises(Refused) as refused:
            await stage.signal(run, st.Number(value=2), request=request)
        assert refused.value.reason == "already_decided"
        assert stage.requests(run) == ()
        with pytest.raises(Refused, match="no request"):
            await stage.signal(run, st.Number(value=2), request="9.9")


async def test_a_stalled_run_says_what_it_lacks() -> None:
    """Which inputs are missing, which precondition was false for what."""
    async with rehearsal(st.Stalls) as stage:
        run = await stage.start(st.Go())
        told = stage.why(run)
        assert told.missing == {"never": ("Number",)}
        assert told.preconditions == {"held": "closed was false for Go 1.1"}
        assert told.next_move == "never waits for Number; held: closed was false for Go 1.1"


async def test_an_event_that_names_its_branch_labels_what_comes_of_it() -> None:
    """The step knows it, the join has none, and `why` and the picture tell the branches apart."""
    st.Branches.broken = {"Chur"}
    async with rehearsal(st.Branches) as stage:
        run = await stage.start(st.Go())
        assert stage.why(run).error == "ask [Chur]: no word from Chur"
        drawn = mermaid(picture(st.Branches, stage.run(run)))
        assert "ask ×2<br/><i>Bern: completed</i><br/><i>Chur: failed</i>" in drawn
        st.Branches.broken = set()
        await stage.pass_time(301)
        assert stage.result(run) == st.Told(text="Bern: sun; Chur: sun (None)")
        assert stage.steps(run) == ["plan", "ask", "ask", "tell"]


def test_contexts_add_up() -> None:
    """What an execution sees of its own changes."""
    run = RunContext({"n": 2, "flag": True, "text": "x"})
    assert run.increment("n", 3) == 5 and run.increment("text") == 1 and run.count("new") == 0
    run.set_flag("flag", False)
    run.delete("gone")
    assert not run.flag("flag") and [c.op for c in run.changes] == ["add", "add", "set", "delete"]
    with pytest.raises(TypeError):
        run.set("n", object())


def test_a_value_is_swapped_only_where_it_is_what_was_expected() -> None:
    """As far as the execution sees; true and 1 are two values, and a key that is not there is None."""
    run = RunContext({"n": 1})
    assert not run.compare_and_set("n", True, 5)
    assert not run.compare_and_set("n", 2, 5)
    assert run.compare_and_set("n", 1, 2) and run.compare_and_set("n", 2, 3) and run.compare_and_set("new", None, "x")
    assert (run.count("n"), run.get("new")) == (3, "x")
    assert [(c.swap, c.expected, c.value) for c in run.changes] == [(True, 1, 2), (True, 2, 3), (True, None, "x")]


async def test_of_two_executions_that_swap_one_value_the_slower_runs_again() -> None:
    """No swap is lost: four executions side by side take four numbers."""
    async with rehearsal(st.Takers) as stage:
        run = await stage.start(st.Go())
        numbers = [taken.number for taken in stage.events(run, st.Taken)]
        assert sorted(numbers) == [0, 1, 2, 3]
        tries = [a for a in stage.run(run).actions.values() if a.step == "take"]
        assert stage.steps(run).count("take") == 4 < len(tries)
        assert stage.run(run).failures == {}
        assert {a.status for a in tries} == {"completed", "abandoned"}


def test_a_picture_shows_how_events_flow() -> None:
    """Entries, steps with their conditions, lists, optional inputs, requests, other agents, stops."""
    text = mermaid(picture(st.Everything))
    assert 'event_Go(["Go"])' in text
    assert 'step_collect["collect<br/><i>if enough</i><br/><i>at most 2</i>"]' in text
    assert 'event_Number ==>|"Number"| step_collect' in text
    assert 'step_ask -.->|"Note"| step_collect' in text
    assert 'step_ask -->|"AgentRequest"| agents' in text
    assert 'agents -->|"AgentResponse"| step_end' in text
    assert 'step_collect -->|"Question"| event_Question' in text
    assert 'event_Told(("Told"))' in text
    drawn = svg(picture(st.Everything))
    assert drawn.startswith("<svg") and "collect" in drawn and "stroke-dasharray" in drawn


async def test_a_run_is_painted_onto_the_picture() -> None:
    """What ran, how often, and what waits."""
    async with rehearsal(st.Stalls) as stage:
        run = await stage.start(st.Go())
        text = mermaid(picture(st.Stalls, stage.run(run)))
    assert 'step_begin["begin ×1"]' in text and "class step_begin completed" in text
    assert "class step_held,step_never waiting" in text


def test_what_is_not_provided_refuses_the_walker() -> None:
    """With the step, the parameter and the way out."""
    with pytest.raises(DefinitionError, match=r"needs\(session: Session\).*Needs.uses"):
        rehearsing = rehearsal(st.Needs)
        asyncio.run(rehearsing.__aenter__())

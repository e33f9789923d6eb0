"""The sample agents do what they say, and lint has nothing to say of them."""

import importlib
import re
from pathlib import Path

import pytest
from samples.agents import (
    bounded_loop,
    count_at_run_time,
    fan_out,
    human_approval,
    memory_after_answer,
    multi_strategy,
    optional_input,
    reflection,
    retrieval_and_answer,
    sub_agent,
)

from waybook.agents import Agent, check
from waybook.agents.mermaid import mermaid
from waybook.agents.picture import picture
from waybook.inbox.agent import Inbox
from waybook.testing.rehearsal import Refused, rehearsal

FOLDER = Path(__file__).parents[3] / "samples" / "agents"


def agents() -> list[type[Agent]]:
    """Every agent of every sample."""
    found = []
    for file in sorted(FOLDER.glob("[a-z]*.py")):
        module = importlib.import_module(f"samples.agents.{file.stem}")
        found += [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Agent) and v is not Agent]
    return found


@pytest.mark.parametrize("agent", [*agents(), Inbox], ids=lambda agent: agent.__name__)
def test_no_false_alarm(agent: type[Agent]) -> None:
    """Lint finds nothing in the samples, nor in the built-in agent; each can be drawn."""
    assert [str(f) for f in check(agent)] == []
    assert all(body in mermaid(picture(agent)) for body in (n.label for n in picture(agent).nodes))


async def test_retrieval_and_answer() -> None:
    """The answer is made of the question itself and of what was found."""
    async with rehearsal(retrieval_and_answer.Assistant) as stage:
        run = await stage.start(retrieval_and_answer.Question(text="how long does shipping take?"))
        assert stage.steps(run) == ["retrieve", "rank", "respond"]
        assert stage.result(run) == retrieval_and_answer.Answered(
            text="You asked: how long does shipping take? Shipping takes two working days."
        )


async def test_fan_out() -> None:
    """Three parts are counted and joined once, also when the process dies in between."""
    async with rehearsal(fan_out.LetterCount) as stage:
        run = await stage.start(fan_out.Text(words=["a", "bb", "ccc", "dddd"]))
        assert sorted(stage.steps(run)) == ["add", "count", "count", "count", "split"]
        assert stage.result(run) == fan_out.Total(letters=10)


async def test_count_at_run_time() -> None:
    """The join runs once, at the last hit."""
    async with rehearsal(count_at_run_time.Searcher) as stage:
        run = await stage.start(count_at_run_time.Search(sources=["wiki", "archive", "web"]))
        assert stage.steps(run).count("choose") == 1
        assert stage.result(run) == count_at_run_time.Best(source="archive")


async def test_bounded_loop() -> None:
    """The loop turns as often as the configuration of the run says."""
    async with rehearsal(bounded_loop.Writer) as stage:
        run = await stage.start(bounded_loop.Topic(text="tea"), config=bounded_loop.LoopConfig(rounds=2))
        assert stage.result(run) == bounded_loop.Final(text="tea more more", rounds=2)


async def test_human_approval() -> None:
    """The run waits without a worker, survives the death of its process, and takes the first answer only."""
    sample = human_approval
    async with rehearsal(sample.Buyer) as stage:
        run = await stage.start(sample.Order(item="a lamp", price=40))
        (request,) = stage.requests(run)
        assert request.event == "MayIBuy"
        assert "waits for an answer to MayIBuy" in stage.why(run).next_move
        await stage.kill()
        await stage.signal(run, sample.Decision(yes=True), request=request.name, by="ada")
        assert stage.result(run) == sample.Bought(item="a lamp", by="ada")
        with pytest.raises(Refused, match="ended"):
            await stage.signal(run, sample.Decision(yes=False), request=request.name, by="eve")


async def test_human_approval_without_an_answer() -> None:
    """The question is settled at its deadline, once: an answer that comes then is refused."""
    sample = human_approval
    async with rehearsal(sample.Buyer) as stage:
        run = await stage.start(sample.Order(item="a lamp", price=40))
        await stage.pass_time(3 * 24 * 3600 + 1)
        assert stage.result(run) == sample.Dropped(reason="nobody decided on a lamp in time")
        with pytest.raises(Refused):
            await stage.signal(run, sample.Decision(yes=True), request="2.1")


@pytest.mark.parametrize(("translate", "text"), [(False, "hello"), (True, "hello / olleh")])
async def test_optional_input(translate: bool, text: str) -> None:
    """With the feature on or off the step runs once, and has what it needs."""
    async with rehearsal(optional_input.Printer) as stage:
        config = optional_input.LetterConfig(translate=translate)
        run = await stage.start(optional_input.Letter(text=" hello "), config=config)
        assert stage.steps(run).count("write") == 1
        assert stage.result(run) == optional_input.Printed(text=text)


async def test_memory_after_answer() -> None:
    """What is remembered is there in the next run of the thread."""
    async with rehearsal(memory_after_answer.Talker) as stage:
        for times in (1, 2):
            run = await stage.start(memory_after_answer.Said(text="hello"), thread="t1")
            assert stage.result(run) == memory_after_answer.Ended(text="You said hello.", times=times)


@pytest.mark.parametrize(("text", "said"), [("8", "It is 16."), ("eight", "No answer: 'eight' is no number")])
async def test_sub_agent(text: str, said: str) -> None:
    """The other agent's answer comes back, and so does its failure."""
    async with rehearsal(sub_agent.Teacher, sub_agent.Calculator) as stage:
        run = await stage.start(sub_agent.Sum(text=text))
        assert stage.result(run) == sub_agent.Solved(text=said)


async def test_reflection() -> None:
    """The first output is no JSON; the model is shown why, and does better."""
    async with rehearsal(reflection.Extractor) as stage:
        run = await stage.start(reflection.Passage(text="we saw a Volvo and a Fiat."))
        assert stage.steps(run) == ["extract", "validate", "reflect", "validate"]
        assert stage.result(run) == reflection.Cars(brands=["Volvo", "Fiat"])


async def test_reflection_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that never does better is asked three times."""
    monkeypatch.setattr(reflection, "parse", lambda text, remark="": "no JSON")
    async with rehearsal(reflection.Extractor) as stage:
        run = await stage.start(reflection.Passage(text="we saw a Volvo"))
        result = stage.result(run)
        assert isinstance(result, reflection.Cars)
        assert (result.brands, stage.steps(run).count("validate")) == ([], 3)


async def test_multi_strategy() -> None:
    """All strategies answer, the judge runs once."""
    async with rehearsal(multi_strategy.MultiStrategy) as stage:
        run = await stage.start(multi_strategy.Query(text="why is the sky blue?"))
        assert sorted(stage.steps(run)) == ["answer", "answer", "answer", "judge", "plan"]
        assert stage.result(run) == multi_strategy.Judged(
            strategy="high_top_k", answer="why is the sky blue? (high_top_k)"
        )


def test_every_sample_that_the_guide_for_llamaindex_users_names_is_there() -> None:
    """Links of the guide lead somewhere."""
    guide = FOLDER.parents[1] / "docs" / "from-llamaindex.md"
    links = re.findall(r"\]\(([^)#]+)\)", guide.read_text())
    assert links and all((guide.parent / link).exists() for link in links)

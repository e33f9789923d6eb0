"""The agent that docs/approvals.md shows does what the guide says of it."""

import re
import sys
import types
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.walker.office import Office, until

from waybook.agents import Agent
from waybook.engine.run import Run
from waybook.events.command import StartPayload
from waybook.events.subjects import RunKey

GUIDE = Path(__file__).parents[3] / "docs" / "approvals.md"
KEY = RunKey("t", "reporting", "r")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> type[Agent]:
    """The guide's program, as a module of its own."""
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    module = types.ModuleType("approvals_guide")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(program, str(GUIDE), "exec"), module.__dict__)  # noqa: S102 - our own guide
    shown: type[Agent] = module.__dict__["Reporting"]
    return shown


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    made = Office()
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("verb", "said"), [("approve", "figures of May, approved by p"), ("reject", "nothing was sent: rejected")]
)
async def test_the_shown_agent_waits_and_goes_on(office: Office, agent: type[Agent], verb: str, said: str) -> None:
    """It parks with a contract before people, and its second step gets the decision."""
    await office.process("one", agent)
    body = msgspec.Raw(b'{"month": "May"}')
    await office.give("start", StartPayload(event="ReportWanted", body=body), id="s", key=KEY)
    await until(lambda: (run := office.run(KEY)) is not None and bool(run.approvals))
    (asked,) = _run(office).approvals.values()
    assert asked.request.summary == "report of May to the board"
    await office.give(verb, None, id="d", key=KEY)
    await until(lambda: _run(office).outcome == "completed")
    result: Any = msgspec.json.decode(_run(office).log[-1].payload)
    assert result == {"text": said}


def _run(office: Office) -> Run:
    run = office.run(KEY)
    assert run is not None
    return run

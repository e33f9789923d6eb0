"""What the commands say of agents of one's own: mistakes are told with the name that is wrong and the way out."""

import subprocess
import sys
from pathlib import Path

import pytest

from waybook.adapters.commit_size import check_size
from waybook.agents import Agent, AgentConfig, StartEvent, StopEvent, step
from waybook.cli.runs import agent_name
from waybook.engine.ports import CommitTooLarge, Draft
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.agent_job import start_payload
from waybook.services.bootstrap.loading import NoSuchAgent, load_agent


class Asked(StartEvent, frozen=True, kw_only=True):
    text: str


class Told(StopEvent, frozen=True, kw_only=True):
    text: str


class Tone(AgentConfig, frozen=True, kw_only=True):
    loud: bool = False


class Parrot(Agent):
    config = Tone

    @step
    async def tell(self, asked: Asked, tone: Tone) -> Told:
        return Told(text=asked.text)


def test_a_field_that_there_is_not_starts_no_run() -> None:
    """A slip of the pen is not passed over; the message names it and the fields that there are."""
    with pytest.raises(InvalidInput, match="Asked has no field `txet`; its fields: text"):
        start_payload(Parrot, None, {"text": "a", "txet": "b"}, {})
    with pytest.raises(InvalidInput, match="the configuration has no field `lout`; its fields: loud"):
        start_payload(Parrot, None, {"text": "a"}, {"lout": True})
    assert start_payload(Parrot, None, {"text": "a"}, {"loud": True}).event == "Asked"


def test_an_agent_goes_by_its_name_or_by_its_class(tmp_path: Path) -> None:
    """What `lint` and `start` take as MODULE:AGENT, `show` and `why` take as well."""
    file = tmp_path / "parrots.py"
    file.write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    assert agent_name("parrot") == "parrot"
    assert agent_name(f"{file}:Parrot") == agent_name(str(file)) == "parrot"
    with pytest.raises(NoSuchAgent, match="has no agent Owl; its agents: Parrot"):
        agent_name(f"{file}:Owl")


def test_a_module_that_raises_is_told_with_its_line(tmp_path: Path) -> None:
    """The author's own line, not one of ours."""
    file = tmp_path / "late.py"
    file.write_text("from waybook.agents import step\n\n\n@step(deadline=3)\ndef work(): ...\n", encoding="utf-8")
    with pytest.raises(NoSuchAgent, match=rf"DefinitionError at {file}:4: `@step` has no option `deadline`"):
        load_agent(str(file))


def test_without_its_extra_the_command_says_what_to_install() -> None:
    """The script is there with the core alone; exit code 2 and one line, no traceback."""
    hidden = "import sys; sys.modules['typer'] = None; from waybook.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs the package typer: pip install 'waybook[all]'\n"


def test_too_many_events_at_once_are_told_as_such() -> None:
    """Where no field is large the way out is to return fewer; where one is, to put it elsewhere."""
    many = b'{"events":[' + b",".join(b'{"event":"Job","number":%d}' % n for n in range(12_000)) + b"]}"
    with pytest.raises(CommitTooLarge, match=r"events \(.*many small events: let a step return fewer at once"):
        check_size(_draft(many))
    with pytest.raises(CommitTooLarge, match=r"events\[0\]\.text \(.*put what is over 64 KiB into the object bucket"):
        check_size(_draft(b'{"events":[{"text":"%s"}]}' % (b"x" * 300_000)))


def _draft(payload: bytes) -> Draft:
    return Draft(subject="state.g1.00.main.wide.r1", expected=0, payload=payload, headers={}, commit="c")

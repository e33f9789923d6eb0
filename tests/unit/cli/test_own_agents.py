"""What the commands say of agents of one's own: mistakes are told with the name that is wrong and the way out."""

import subprocess
import sys
from pathlib import Path

import pytest

from waybook.adapters.commit_size import check_size
from waybook.agents import Agent, AgentConfig, StartEvent, StopEvent, check, step
from waybook.cli.passed_over import passed_over_lines
from waybook.cli.runs import agent_name
from waybook.engine.hold import PassedOver
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


def test_a_module_that_ends_the_process_is_told_with_its_line(tmp_path: Path) -> None:
    """`sys.exit()` at its top level is a mistake like any other."""
    file = tmp_path / "ends.py"
    file.write_text("import sys\n\nsys.exit(3)\n", encoding="utf-8")
    with pytest.raises(NoSuchAgent, match=rf"raises SystemExit at {file}:3: 3"):
        load_agent(str(file))


@pytest.mark.parametrize("name", ["", ":", ":Clerk", ".", "./"])
def test_a_name_that_names_no_module_is_told(name: str) -> None:
    """The message says what to write."""
    with pytest.raises(NoSuchAgent, match=r"names no module; write MODULE:AGENT or FILE\.py:AGENT"):
        load_agent(name)


AGENT_FILE = """
from __future__ import annotations
import msgspec
from waybook.agents import *

class Inner{n}(msgspec.Struct):
    v: int = 1

class Go{n}(StartEvent):
    inner: Inner{n} | None = None

class Done{n}(StopEvent):
    pass

class Agent{n}(Agent):
    @step
    async def work(self, go: Go{n}) -> Done{n}:
        return Done{n}()
"""


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    """Neither takes the other's place, nor that of a module of Python; a file is read once, and again when it has changed."""
    files = []
    for n in (1, 2):
        (tmp_path / f"folder{n}").mkdir()
        files.append(tmp_path / f"folder{n}" / "email.py")
        files[-1].write_text(AGENT_FILE.format(n=n), encoding="utf-8")
    mails = sys.modules["email"]
    agents = [load_agent(str(file)) for file in files]
    assert [a.__name__ for a in agents] == ["Agent1", "Agent2"]
    assert [check(a) for a in agents] == [(), ()]
    assert load_agent(f"{files[0]}:Agent1") is agents[0]
    assert sys.modules["email"] is mails
    files[0].write_text(AGENT_FILE.format(n=33), encoding="utf-8")
    assert load_agent(str(files[0])).__name__ == "Agent33"


def test_a_file_in_a_package_may_import_its_neighbours(tmp_path: Path) -> None:
    """It goes by its whole name, like with MODULE:AGENT."""
    package = tmp_path / "crew_of_files"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "facts.py").write_text(AGENT_FILE.format(n=5), encoding="utf-8")
    own = "from .facts import *\n\nclass Crew(Agent5): ...\n"
    (package / "crew.py").write_text(own, encoding="utf-8")
    assert load_agent(str(package / "crew.py")).__module__ == "crew_of_files.crew"


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


def test_failures_that_stopped_nothing_are_told_as_many_as_people_read() -> None:
    """One line each with step, attempt and error; of many the rest is counted."""
    failures = [PassedOver(f"fetch [{n}]", "1.0", 1, "TimeoutError", "no answer") for n in range(12)]
    lines = list(passed_over_lines(failures))
    assert lines[0] == "passed fetch [0] (attempt 1) failed: TimeoutError: no answer; the run went on without it"
    assert lines[10:] == ["passed 2 more; --json has all of them"]
    assert len(list(passed_over_lines(failures[:10]))) == 10

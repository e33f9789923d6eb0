"""The guide to thinking in data is one module: its agents are checked, and everything that it shows is played."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from waybook.agents import Agent, check

GUIDE = Path(__file__).parents[3] / "docs" / "thinking.md"
WARNED = {"Eager": ["OPTIONAL_WITHOUT_PRECONDITION"]}
"""What lint says of an agent that the guide shows as a trap."""


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The guide's code as a module: the checks read its source."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    file = tmp_path_factory.mktemp("guide") / "thinking_guide.py"
    file.write_text("\n\n".join(blocks), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("thinking_guide", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["thinking_guide"] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["thinking_guide"]


async def test_what_the_guide_shows_happens(guide: ModuleType) -> None:
    shown = [f for name, f in inspect.getmembers(guide, inspect.iscoroutinefunction) if name.startswith("shows_")]
    assert len(shown) == 8
    for one in shown:
        await one()


def test_lint_says_of_the_guides_agents_what_the_guide_says(guide: ModuleType) -> None:
    agents = [a for _, a in inspect.getmembers(guide, inspect.isclass) if issubclass(a, Agent) and a is not Agent]
    found = {a.__name__: [f.code for f in check(a)] for a in agents}
    assert {name: codes for name, codes in found.items() if codes} == WARNED
    assert len(found) == 9

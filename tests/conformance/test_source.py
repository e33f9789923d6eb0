"""Who appends to STATE, as the source says."""

from pathlib import Path

import pytest
from tests.conformance.pipeline.source import writers_of_state

DECORATOR = """
class Log:
    def __init__(self, inner: StateLog) -> None:
        self._inner = inner
    async def append(self, draft: Draft) -> int:
        return await self._inner.append({argument})
"""


@pytest.mark.parametrize(
    ("source", "writes"),
    [
        pytest.param("async def f(log: StateLog, d):\n    await log.append(d)", True, id="annotated"),
        pytest.param("async def f(ports):\n    await ports.state.append(d)", True, id="awaited"),
        pytest.param("async def f(x):\n    await wait_for(x.append(d), 1)", True, id="handed on to be awaited"),
        pytest.param("def f(x):\n    x.append(Draft())", True, id="given a draft"),
        pytest.param("class A:\n    def __init__(self, log: 'NatsStateLog'):\n        self._l = log\n"
                     "    def f(self):\n        return self._l.append(d)", True, id="kept in an attribute"),
        pytest.param("def f(found: list[int]):\n    found.append(1)", False, id="a list"),
        pytest.param("async def f(bench: Bench):\n    await bench.append(1)", False, id="something else"),
        pytest.param(DECORATOR.format(argument="draft"), False, id="an adapter hands on what it was given"),
        pytest.param(DECORATOR.format(argument="Draft()"), True, id="an adapter writes of its own"),
    ],
)  # fmt: skip
def test_writers_are_found(tmp_path: Path, source: str, writes: bool) -> None:
    """A call of the port's append is found however it is written; other appends are not taken for one."""
    package = tmp_path / "services" / "waybook"
    package.mkdir(parents=True)
    (package / "module.py").write_text(source, encoding="utf-8")
    assert writers_of_state(tmp_path) == (["waybook.module"] if writes else [])

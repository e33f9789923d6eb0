"""Checks for steps that were marked and are none: what hides the mark would be passed over without a word."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any

from waybook.agents.agent import Agent
from waybook.agents.findings import Finding, place_of
from waybook.agents.reading import Sheet
from waybook.agents.source import called
from waybook.agents.step import MARK, step


def lost_steps(sheet: Sheet) -> Iterator[Finding]:
    """Methods of the agent's class, or of a base, that are meant as steps and never run."""
    agent = sheet.agent
    told = {body.name for body in (*sheet.bodies, *sheet.replaced)}
    for name, value in inspect.getmembers_static(agent):
        if name in told:
            continue
        if (text := _why(agent, name, value)) is not None:
            place = place_of(value if isinstance(value, FunctionType) else agent, agent.__name__, name)
            yield place.finding("STEP_LOST", f"`{name}` never runs: {text}")


def _why(agent: type[Agent], name: str, value: Any) -> str | None:
    """Why a name of the class is no step although it was to be one; None where it was not."""
    kind = type(value).__name__
    if isinstance(value, staticmethod | classmethod):
        return None  # told as STEP_WITHOUT_SELF
    if hasattr(getattr(value, "fget", getattr(value, "func", None)), MARK):
        return f"its @step is inside a {kind}; a step is a method: write `async def {name}(self, ...)` with @step alone"
    if value is None or name.startswith("__"):
        return None  # taken out on purpose; of Python's own
    owner = next(cls for cls in agent.__mro__ if name in vars(cls))
    if any(hasattr(vars(cls).get(name), MARK) for cls in owner.__mro__[1:]):
        return (
            f"{owner.__name__} replaces the step that it inherits by one without @step; mark it with @step, or write "
            f"`{name} = None` to leave the step out"
        )
    if callable(value) and owner not in (Agent, object) and name in _marked_in_source(owner):
        return (
            "a decorator above its @step returns another function, which has lost the mark; put @step on top, or let the "
            "decorator use functools.wraps"
        )
    return None


@lru_cache(maxsize=64)
def _marked_in_source(cls: type) -> frozenset[str]:
    """The methods of a class that stand below a `@step` in its source; none where there is no source."""
    tree = _class_tree(cls)
    if tree is None:
        return frozenset()
    names = vars(sys.modules.get(cls.__module__, object))
    methods = (n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(
        m.name
        for m in methods
        if any(called(d.func if isinstance(d, ast.Call) else d, names) is step for d in m.decorator_list)
    )


def _class_tree(cls: type) -> ast.ClassDef | None:
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = module.body[0] if module.body else None
    return found if isinstance(found, ast.ClassDef) else None

"""Finds an agent's class by `MODULE:AGENT`."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from waybook.agents import Agent
from waybook.events.errors import InvalidInput


class NoSuchAgent(InvalidInput):
    """`MODULE:AGENT` names no agent; the message says what is there."""


def load_agent(name: str) -> type[Agent]:
    """The agent's class. `MODULE` is a module's name, or the path of a `.py` file; the working folder is searched first.

    Without `:AGENT` the module's only agent is meant. Raises NoSuchAgent.
    """
    module_name, _, agent_name = name.rpartition(":") if ":" in name else (name, "", "")
    module = _module(module_name)
    found = {
        n: v
        for n, v in vars(module).items()
        if isinstance(v, type) and issubclass(v, Agent) and v is not Agent and v.__module__ == module.__name__
    }
    known = ", ".join(found) or "none"
    if agent_name:
        agent: Any = getattr(module, agent_name, None)
        if isinstance(agent, type) and issubclass(agent, Agent):
            return agent
        raise NoSuchAgent(f"{module_name} has no agent {agent_name}; its agents: {known}")
    if len(found) != 1:
        raise NoSuchAgent(f"which agent of {module_name}? Write {module_name}:NAME; its agents: {known}")
    return next(iter(found.values()))


def load_function(name: str) -> Callable[..., Any]:
    """The function that `MODULE:FUNCTION` names; `MODULE` as in `load_agent`. Raises InvalidInput."""
    module_name, colon, function = name.rpartition(":")
    if not colon:
        raise InvalidInput(f"{name!r} names no function; write MODULE:FUNCTION or FILE.py:FUNCTION")
    found = getattr(_module(module_name), function, None)
    if not callable(found):
        raise InvalidInput(f"{module_name} has no function {function}")
    return cast(Callable[..., Any], found)


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        if name.endswith(".py"):
            return _from_file(Path(name))
        return importlib.import_module(name)
    except ImportError as error:
        text = f"{name} cannot be imported: {error}; write MODULE:AGENT or FILE.py:AGENT"
        raise NoSuchAgent(text) from error
    except Exception as error:
        raise NoSuchAgent(f"importing {name} raises {type(error).__name__}{_place(error)}: {error}") from error


def _place(error: Exception) -> str:
    """Where in the author's own code it was raised: the last line that is none of ours, nor of Python's."""
    ours = str(Path(__file__).parents[2])
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((ours, "<frozen"))]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ImportError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module

"""Finds an agent's class by `MODULE:AGENT`."""

import hashlib
import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from waybook.agents import Agent
from waybook.events.errors import InvalidInput

_READ: dict[Path, tuple[tuple[int, int], ModuleType]] = {}
"""Modules of files that were read, with the time and the size that the file had then."""


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
    if not name or name.startswith("."):
        raise NoSuchAgent(f"{name!r} names no module; write MODULE:AGENT or FILE.py:AGENT")
    try:
        if name.endswith(".py"):
            return _from_file(Path(name).resolve())
        return importlib.import_module(name)
    except ImportError as error:
        text = f"{name} cannot be imported{_place(error)}: {error}; write MODULE:AGENT or FILE.py:AGENT"
        raise NoSuchAgent(text) from error
    except (Exception, SystemExit) as error:  # a module that ends the process is wrong like one that raises
        raise NoSuchAgent(f"importing {name} raises {type(error).__name__}{_place(error)}: {error}") from error


def _place(error: BaseException) -> str:
    """Where in the author's own code it was raised: the last line that is none of ours, nor of Python's."""
    ours = str(Path(__file__).parents[2])
    pythons = sysconfig.get_path("stdlib")
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith((ours, "<frozen")) and Path(f.filename).parent != Path(pythons, "importlib")
    ]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _from_file(path: Path) -> ModuleType:
    """The module of a file, the same one at every call; in a package it goes by its whole name, for its own imports."""
    if not path.is_file():
        raise ImportError(f"there is no file {path}")
    root, name = _in_package(path)
    if root is not None:
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
        found = importlib.import_module(name)
        if _is_of(found, path):
            return found
    looks = (path.stat().st_mtime_ns, path.stat().st_size)
    before = _READ.get(path)
    if before is not None and before[0] == looks:
        return before[1]
    module_name = before[1].__name__ if before is not None else _free(name, path)
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    _READ[path] = (looks, module)
    return module


def _in_package(path: Path) -> tuple[Path | None, str]:
    """The folder in which a file's package lies and the file's name in it; None where it lies in no package."""
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    in_one = len(parts) > 1 and path.stem != "__init__" and all(part.isidentifier() for part in parts)
    return (folder, ".".join(parts)) if in_one else (None, path.stem)


def _is_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _free(name: str, path: Path) -> str:
    """`name`, or one of its own for a file whose name another module has: neither may take the other's place."""
    if name not in sys.modules and name not in sys.stdlib_module_names:
        return name
    return f"{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"

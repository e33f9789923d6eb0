"""A snapshot is believed only where the code that folds is the same: none of its modules may be left out of its name."""

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Iterator

from waybook.services.walker.snapshots import _FOLDING

ROOTS = ("waybook.engine.fold", "waybook.engine.run", "waybook.engine.snapshot", "waybook.events.codec")

NAMES_ALONE = {"waybook.engine.errors", "waybook.events.errors", "waybook.events.headers"}
"""They say how errors and headers are called; nothing of that is in a folded run."""

TAKEN_FOR_ONE_WORD = {"waybook.engine.definition"}
"""Only the name of a state comes from there; what it imports in turn decides and does not fold."""


def _imports(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
        if not isinstance(node, ast.ImportFrom) or node.module is None or not node.module.startswith("waybook."):
            continue
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        are_modules = [name for name in inner if _is_module(name)]
        yield from are_modules or [node.module]


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a name inside a module
        return False


def test_every_module_that_folds_is_in_the_name_of_the_folding_code() -> None:
    """Whatever is imported from the modules that fold, and from those in turn."""
    seen: set[str] = set()
    left = list(ROOTS)
    while left:
        module = left.pop()
        if module in seen or module in NAMES_ALONE:
            continue
        seen.add(module)
        if module not in TAKEN_FOR_ONE_WORD:
            left += _imports(module)
    assert seen - set(_FOLDING) == set()

"""The source tree, read: which modules call the append of the state stream's port."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.cases import ROOT

SOURCE_ROOTS = ("events", "projections", "services")
PORT = "StateLog"
LIFECYCLE = "waybook.services.walker.lifecycle"


def writers_of_state(root: Path = ROOT) -> list[str]:
    """Modules with such a call, sorted; the lifecycle module stands as `lifecycle`."""
    found = sorted(name for name, tree in _modules(root) if any(_appends(tree)))
    return ["lifecycle" if name == LIFECYCLE else name for name in found]


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for source_root in SOURCE_ROOTS:
        top = root / source_root
        for path in sorted(top.rglob("*.py")):
            name = ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"), str(path))


def _appends(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of `append` on what is annotated as the port, that are awaited, or that are given a Draft.

    Lists' append is no coroutine, so an awaited one, or one handed on to be awaited, is of this kind unless its
    receiver is annotated as something else.
    """
    names, others = _names_by_annotation(tree)
    handed_on = {id(call) for call in _awaited_or_handed_on(tree)}
    passed_on = {id(call) for call in _passed_on(tree)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
            continue
        if id(call) in passed_on:
            continue
        receiver = call.func.value
        known = _last_name(receiver) in names
        draft = any(isinstance(a, ast.Call) and _last_name(a.func) == "Draft" for a in call.args)
        unknown = id(call) in handed_on and _last_name(receiver) not in others
        if known or draft or unknown:
            yield call


def _passed_on(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls by which an adapter of the port hands on, in its own `append`, the very draft that it was given."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef) or function.name != "append" or len(function.args.args) < 2:
            continue
        draft = function.args.args[1].arg
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and call.args and _last_name(call.args[0]) == draft:
                yield call


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _names_by_annotation(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names and attributes that hold the port, or an adapter of it, and those annotated as something else."""
    names: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            (names if _mentions_port(node.annotation) else others).add(node.arg)
        elif isinstance(node, ast.AnnAssign) and (name := _last_name(node.target)) is not None:
            (names if _mentions_port(node.annotation) else others).add(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _last_name(node.value) in names:
            names |= {name for target in node.targets if (name := _last_name(target)) is not None}
    return names, others - names


def _mentions_port(annotation: ast.expr) -> bool:
    """`StateLog`, also in quotes or as part of a union, or one of its adapters (`NatsStateLog`)."""
    return any(
        (_last_name(n) or (n.value if isinstance(n, ast.Constant) and isinstance(n.value, str) else "")).endswith(PORT)
        for n in ast.walk(annotation)
        if isinstance(n, ast.expr)
    )


def _awaited_or_handed_on(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            yield node.value
            for argument in node.value.args:
                if isinstance(argument, ast.Call):
                    yield argument

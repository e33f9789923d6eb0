"""Checks that read a step's own source: what it decides too late, and what it hands on beside events.

They follow names through assignments of one function and no further; what they cannot see they do not report.
"""

import ast
import inspect
import textwrap
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from waybook.agents.delegation import AgentRequest, delegate
from waybook.agents.findings import Finding
from waybook.agents.injection import is_config
from waybook.agents.reading import Sheet, StepBody
from waybook.agents.run_context import RunContext
from waybook.agents.signature import Signature

WRITES: Mapping[str, int] = {"set": 1, "compare_and_set": 2}
"""Methods that write a value, with its place among the arguments."""
READS = frozenset({"get", "count", "flag"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Use(msgspec.Struct, frozen=True):
    """One use of a context's key. `by`: the step or precondition. `fields`: what of an event is written, if anything."""

    by: str
    key: str
    line: int
    fields: str = ""


class _Source(msgspec.Struct, frozen=True):
    """A function's tree, the line of its first line less one, and the names that it sees."""

    tree: Function
    offset: int
    names: Mapping[str, Any]


def source_findings(sheet: Sheet) -> Iterator[Finding]:
    """Findings on what the steps' bodies do. Where there is no source, as in an interactive session, there are none."""
    writes: list[tuple[StepBody, Use]] = []
    reads: list[Use] = []
    for body in sheet.bodies:
        source = _source(body.function, sheet.agent)
        if source is not None:
            yield from _config_lie(body, source)
            yield from _untold_output(body, source)
            yield from _blank_agents(body, source)
            for context in _named(body.signature, RunContext):
                writes.extend((body, use) for use in _writes(body, source, context))
                reads.extend(_reads(body.name, source, context))
        asked = body.options.precondition
        of_gate = _source(asked) if callable(asked) else None
        if of_gate is not None and body.precondition is not None and asked is not None:
            for context in _named(body.precondition, RunContext):
                reads.extend(_reads(f"{asked.__name__} of {body.name}", of_gate, context))
    yield from _smuggles(writes, reads)


def _source(function: Callable[..., Any], agent: type | None = None) -> _Source | None:
    try:
        lines, first = inspect.getsourcelines(function)
        module = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    tree = module.body[0] if module.body else None
    if not isinstance(tree, Function):
        return None
    names = getattr(inspect.unwrap(function), "__globals__", {})
    own: dict[str, Any] = _constants(tree)
    if agent is not None:
        own["self"] = agent
    return _Source(tree, first - 1, ChainMap(own, names))


def _constants(tree: Function) -> dict[str, Any]:
    """Texts that a function gives a name once: keys of a context are often written so."""
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)]
    found = {t.id: n.value.value for n in assigned for t in n.targets if isinstance(t, ast.Name)}  # type: ignore[attr-defined]
    return {name: value for name, value in found.items() if isinstance(value, str) and stored.count(name) == 1}


def _named(signature: Signature, kind: type) -> list[str]:
    return [name for name, asked in signature.injected.items() if asked is kind]


class _Taint:
    """Which of the watched names an expression derives from, through the assignments of one function."""

    def __init__(self, tree: Function, watched: frozenset[str]) -> None:
        self._origins: dict[str, frozenset[str]] = {name: frozenset({name}) for name in watched}
        for _ in range(2):  # a loop may use what a later line assigns
            for node in ast.walk(tree):
                self._note(node)

    def of(self, node: ast.AST | None) -> frozenset[str]:
        """The watched names behind an expression."""
        if node is None:
            return frozenset()
        names = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self._origins)
        return frozenset(o for name in names for o in self._origins[name])

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            self._bind(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._bind(node.target, node.iter)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._match(case.pattern, node.subject)

    def _bind(self, target: ast.AST, value: ast.AST | None) -> None:
        self._add((n.id for n in ast.walk(target) if isinstance(n, ast.Name)), self.of(value))

    def _match(self, pattern: ast.pattern, subject: ast.AST) -> None:
        bound = (n.name for n in ast.walk(pattern) if isinstance(n, ast.MatchAs | ast.MatchStar))
        self._add((name for name in bound if name is not None), self.of(subject))

    def _add(self, names: Iterable[str], origins: frozenset[str]) -> None:
        if origins:
            for name in names:
                self._origins[name] = self._origins.get(name, frozenset()) | origins


# --- config lie


def _config_lie(body: StepBody, source: _Source) -> Iterator[Finding]:
    """A condition that asks both the configuration and whether an optional event is there."""
    asked = {t for p in body.precondition.parameters for t in p.types} if body.precondition is not None else set()
    optional = {p.name for p in body.signature.parameters if p.is_optional and not asked & set(p.types)}
    configs = {name for name, kind in body.signature.injected.items() if is_config(kind)}
    if not optional or not configs:
        return
    told: set[tuple[str, str]] = set()
    for line, names in _conditions(source.tree, _Taint(source.tree, frozenset(optional | configs))):
        for event in sorted(names & optional):
            for config in sorted(names & configs):
                if (event, config) not in told:
                    told.add((event, config))
                    text = (
                        f"`{body.name}` looks at `{config}` and at a missing `{event}` in its body; the decision to run has "
                        f"already been made. Ask both in a precondition: @step(precondition=...)."
                    )
                    yield body.place.finding("CONFIG_LIE", text, event, line=source.offset + line)


def _conditions(tree: Function, taint: _Taint) -> Iterator[tuple[int, frozenset[str]]]:
    """Every condition with the names that it, the conditions around it, and those that left before it derive from."""

    def inside(node: ast.AST, around: frozenset[str]) -> Iterator[tuple[int, frozenset[str]]]:
        test = getattr(node, "test", None) or (node.subject if isinstance(node, ast.Match) else None)
        if isinstance(node, ast.BoolOp):
            test = node
        if test is not None:
            around = around | taint.of(test)
            yield test.lineno, around
        for _, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            yield from block([child for child in children if isinstance(child, ast.AST)], around)

    def block(nodes: Iterable[ast.AST], around: frozenset[str]) -> Iterator[tuple[int, frozenset[str]]]:
        for node in nodes:
            yield from inside(node, around)
            if isinstance(node, ast.If) and isinstance(
                node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break
            ):
                around = around | taint.of(node.test)

    yield from block(tree.body, frozenset())


# --- a result without a type


def _untold_output(body: StepBody, source: _Source) -> Iterator[Finding]:
    """A step that returns something and says no type would fail whenever it runs."""
    if "return" in getattr(body.function, "__annotations__", {}):
        return
    for node in _own(source.tree):
        if isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
            text = f"`{body.name}` returns something and says no type; write it behind the arrow: `-> Event`"
            yield body.place.finding("INVALID_OUTPUT", text, line=source.offset + node.lineno)
            return


def _own(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


# --- context smuggle


def _writes(body: StepBody, source: _Source, context: str) -> Iterator[Use]:
    """Keys that get a value from an event."""
    events = frozenset(p.name for p in body.signature.parameters)
    taint = _Taint(source.tree, events)
    for call, method, key in _calls(source, context, WRITES):
        at = WRITES[method]
        value = call.args[at] if len(call.args) > at else _keyword(call, "value")
        from_events = sorted(taint.of(_without_counting(value)) & events) if value is not None else []
        if from_events:
            yield Use(body.name, key, source.offset + call.lineno, ", ".join(from_events))


class _Counting(ast.NodeTransformer):
    """Takes out what says how many there are, whether there is one, or which of two it is: control flow, no data."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("len", "bool", "isinstance"):
            return ast.Constant(0)
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return ast.Constant(False)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return ast.Tuple([node.body, node.orelse], ast.Load())  # which of the two it is says a condition


def _without_counting(value: ast.expr) -> ast.AST:
    copied = ast.parse(ast.unparse(value), mode="eval").body
    made: ast.AST = _Counting().visit(copied)
    return made


def _reads(by: str, source: _Source, context: str) -> Iterator[Use]:
    for call, _, key in _calls(source, context, READS):
        yield Use(by, key, source.offset + call.lineno)


def _calls(source: _Source, context: str, methods: Collection[str]) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls `context.method(key, ...)` with method and key, where that is known; the context may go by another name."""
    aliases = _aliases(source.tree, context)
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id in aliases):
            continue
        key = _text(node.args[0] if node.args else _keyword(node, "key"), source.names)
        if key is not None:
            yield node, node.func.attr, key


def _aliases(tree: Function, name: str) -> set[str]:
    """The names under which a function knows what it got as `name`."""
    found = {name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in found:
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return found


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _text(node: ast.expr | None, names: Mapping[str, Any]) -> str | None:
    """A text that is written down, or a constant of the module or of a class."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), str):
        found: str = names[node.id]
        return found
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(names.get(node.value.id), node.attr, None)
        return value if isinstance(value, str) else None
    return None


def _smuggles(writes: list[tuple[StepBody, Use]], reads: list[Use]) -> Iterator[Finding]:
    for body, write in writes:
        readers = sorted({read.by for read in reads if read.key == write.key and read.by != write.by})
        if readers:
            who = " and ".join(f"`{name}`" for name in readers)
            text = (
                f"`{write.key}` is written from an event (`{write.fields}`) in `{body.name}` and read in {who}; executions "
                f"side by side overwrite each other. Let {who} take the event itself."
            )
            yield body.place.finding("CONTEXT_SMUGGLE", text, write.fields, line=write.line)


# --- delegation


def _blank_agents(body: StepBody, source: _Source) -> Iterator[Finding]:
    """Calls that hand work to an agent whose written name is blank."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        target = called(node.func, source.names)
        if target not in (delegate, AgentRequest):
            continue
        given = node.args[0] if node.args else _keyword(node, "agent")
        name = _text(given, source.names)
        if name is not None and not name.strip():
            text = f"`{body.name}` hands work to an agent without a name, which would wait for ever; name the agent"
            yield body.place.finding("INCOMPLETE_AGENT_REFERENCE", text, line=source.offset + node.lineno)


def called(function: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a call calls, where it is a name of the module or an attribute of one."""
    if isinstance(function, ast.Name):
        return names.get(function.id)
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return getattr(names.get(function.value.id), function.attr, None)
    return None

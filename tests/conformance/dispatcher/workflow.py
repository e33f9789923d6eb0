"""A dispatcher case as data: its workflows, and the rendering of each as the source of an agent's class."""

import ast
import itertools
import linecache
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported

import waybook.agents as wa
from waybook.agents.delegation import AgentFailure, AgentRequest, AgentResponse

PRODUCT_EVENTS: Mapping[str, type] = {
    "ExceptionEvent": wa.ExceptionEvent,
    "AgentRequest": AgentRequest,
    "AgentResponse": AgentResponse,
    "AgentFailure": AgentFailure,
}
INJECTABLE = {
    "RunContext": "wa.RunContext",
    "ThreadContext": "wa.ThreadContext",
    "EventDisplayer": "wa.Displayer",
}
_numbers = itertools.count(1)


class Workflow(msgspec.Struct):
    """One workflow of a case, as data."""

    name: str
    events: dict[str, dict[str, Any]]
    steps: list[dict[str, Any]]
    config: dict[str, Any] = {}
    config_type: str = "AgentConfig"
    config_invalid: bool = False
    config_keys: tuple[str, ...] = ()
    duplicate_event_classes: tuple[str, ...] = ()


class Built(msgspec.Struct):
    """The agent's class, and what its bodies tell while they run."""

    agent: type[wa.Agent]
    classes: dict[str, type[wa.Event]]
    source: str
    instances: list[int]


def build(workflow: Workflow, attempt: Callable[[], int], foreign: Mapping[str, type]) -> Built:
    """Renders and compiles a workflow. `foreign`: start events of other workflows, by name."""
    source = _Renderer(workflow, foreign).module()
    name = f"conformance_case_{next(_numbers)}"
    file = f"/conformance/{workflow.name}_{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType(name)
    module.__file__ = file
    made: list[int] = []
    module.__dict__.update({"wa": wa, "attempt_now": attempt, "together": _together, "made": made, "Any": Any})
    module.__dict__.update({n: PRODUCT_EVENTS[n] for n in PRODUCT_EVENTS})
    module.__dict__.update({f"foreign_{n}": cls for n, cls in foreign.items()})
    sys.modules[name] = module
    exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102  the case's own text
    classes = {n: getattr(module, n) for n in workflow.events}
    return Built(module.__dict__["Workflow"], classes, source, made)


def _together(emitted: list[Any]) -> Any:
    return None if not emitted else emitted[0] if len(emitted) == 1 else emitted


class _Renderer:
    def __init__(self, workflow: Workflow, foreign: Mapping[str, type]) -> None:
        self._flow = workflow
        self._foreign = foreign
        self._lines: list[str] = []

    def module(self) -> str:
        flow = self._flow
        for name in _parents_first(flow.events):
            if name not in PRODUCT_EVENTS:
                self._event(name, flow.events[name])
        self._configuration()
        self._strangers()
        for index, step in enumerate(flow.steps):
            if "config" in step:
                values = {n: _type_of(v) for n, v in step["config"].items()}
                self._class(f"StepConfig_{index}", "wa.StepConfig", values)
            if "precondition" in step:
                self._precondition(index, step["precondition"])
        doubled = [f"{n}_again" for n in flow.duplicate_event_classes]
        self._put(
            "", "class Workflow(wa.Agent):", f'    name = "{flow.name.lower()}"', f"    config = {flow.config_type}"
        )
        taken = {t for s in flow.steps for p in s["params"] for t in p["type"].split("|")}
        accepted = [n for n, e in flow.events.items() if _flag(flow.events, n, "external") and n not in taken]
        self._put(f"    accepts = ({''.join(f'{n}, ' for n in (*accepted, *doubled))})", "")
        self._put("    def __init__(self) -> None:", "        made.append(1)", "")
        for index, step in enumerate(flow.steps):
            self._step(index, step)
        return "\n".join(self._lines) + "\n"

    def _put(self, *lines: str) -> None:
        self._lines.extend(lines)

    def _class(self, name: str, bases: str, fields: Mapping[str, str], shown: str | None = None) -> None:
        self._put("", f"class {name}({bases}, frozen=True, kw_only=True):")
        self._put(*(f"    {n}: {kind}" for n, kind in fields.items()))
        self._put("    pass")
        if shown is not None:
            self._put("", f"{name}.__name__ = {shown!r}")

    def _event(self, name: str, event: dict[str, Any]) -> None:
        bases = [event["extends"]] if "extends" in event else []
        flags = {"start": "wa.StartEvent", "stop": "wa.StopEvent", "external": "wa.ExternalEvent",
                 "display_only": "wa.DisplayEvent"}  # fmt: skip
        parent = event.get("extends")
        for flag, base in flags.items():
            if event.get(flag) and not (parent and _flag(self._flow.events, parent, flag)):
                bases.append(base)
        fields = {n: f"{kind} | None = None" for n, kind in event.get("fields", {}).items()}
        self._class(name, ", ".join(bases) or "wa.Event", fields)
        if name in self._flow.duplicate_event_classes:
            self._class(f"{name}_again", "wa.ExternalEvent", {}, shown=name)

    def _configuration(self) -> None:
        flow = self._flow
        fields = {n: _type_of(v) for n, v in flow.config.items()}
        fields |= {n: "Any" for n in flow.config_keys if n not in fields}
        if flow.config_invalid:
            fields["never_given"] = "int"
        self._class(flow.config_type, "wa.AgentConfig", fields)

    def _strangers(self) -> None:
        """Types that the engine does not know, and configurations of other agents."""
        asked = [p for s in self._flow.steps for p in s["params"]]
        asked += [p for s in self._flow.steps for p in s.get("precondition", {}).get("params", [])]
        known = {self._flow.config_type, "StepConfig", *INJECTABLE}
        for name in sorted({p["type"] for p in asked if p["kind"] == "inject"} - known):
            if name.endswith("Config"):
                self._class(name, "wa.AgentConfig", {})
            else:
                self._put("", f"class {name}:", "    pass")

    def _precondition(self, index: int, asked: dict[str, Any]) -> None:
        parameters = ", ".join(self._parameter(index, p) for p in asked["params"])
        expression = self._expression(asked["expr"], asked["params"])
        self._put(
            "", "@wa.precondition", f"async def {asked['name']}({'*, ' if parameters else ''}{parameters}) -> bool:"
        )
        self._put(f"    return {expression}", "", f"precondition_{index} = {asked['name']}")

    def _step(self, index: int, step: dict[str, Any]) -> None:
        options = []
        if step.get("max_executions_per_run") is not None:
            options.append(f"max_executions={step['max_executions_per_run']}")
        if "stop_on_error" in step:
            options.append(f"stop_on_error={step['stop_on_error']}")
        if "precondition" in step:
            options.append(f"precondition=precondition_{index}")
        if "config" in step:
            values = ", ".join(f"{n}={v!r}" for n, v in step["config"].items())
            options.append(f"config=StepConfig_{index}({values})")
        parameters = ", ".join(self._parameter(index, p) for p in step["params"])
        style = step.get("style", "async")
        define = "def" if style == "sync" else "async def"
        returns = " | ".join(r.replace("|", " | ") for r in step["returns"]) or "None"
        if style == "async_generator":
            self._put(
                "    @wa.step(" + ", ".join(options) + ")", f"    {define} {step['name']}(self, *, {parameters}):"
            )
        else:
            nullable = returns if returns == "None" else f"{returns} | None"
            head = f"    {define} {step['name']}(self{', *, ' if parameters else ''}{parameters}) -> {nullable}:"
            self._put("    @wa.step(" + ", ".join(options) + ")", head)
        self._put("        emitted: list[Any] = []")
        for emit in step["emits"]:
            self._statement(emit, step)
        self._put("        yield emitted" if style == "async_generator" else "        return together(emitted)", "")

    def _statement(self, emit: dict[str, Any], step: dict[str, Any]) -> None:
        def told(text: Any) -> str:
            return self._expression(str(text), step["params"])

        if "emit" in emit:
            made = f"{emit['emit']}({', '.join(f'{n}={told(v)}' for n, v in emit.get('fields', {}).items())})"
            line = f"emitted.append({made})"
            if "times" in emit:
                line = f"emitted.extend([{made} for i in range({told(emit['times'])})])"
        elif "raise" in emit:
            line = f"raise RuntimeError({emit['raise']!r})"
        elif "set" in emit:
            where, key, value = emit["set"]
            line = f"{_injected(step, where)}.set({key!r}, {told(value)})"
        elif "increment" in emit:
            where, key, by = emit["increment"]
            line = f"{_injected(step, where)}.increment({key!r}, {told(by)})"
        elif "self_set" in emit:
            name, value = emit["self_set"]
            line = f"self.{name} = {told(value)}"
        elif "display" in emit:
            shown = emit["display"]
            name = shown if isinstance(shown, str) else shown["event"]
            fields = {} if isinstance(shown, str) else shown.get("fields", {})
            fields = {**fields, **emit.get("fields", {})}
            made = f"{name}({', '.join(f'{n}={told(v)}' for n, v in fields.items())})"
            times = f"for i in range({told(emit['times'])}): " if "times" in emit else ""
            line = f"{times}await {_injected(step, 'display')}.show({made})"
        elif "delegate" in emit:
            line = f"emitted.append({self._delegate(emit['delegate'], told)})"
        else:
            raise Unsupported(f"`emits` of {step['name']}: {sorted(emit)}")
        if "when" in emit:
            self._put(f"        if {told(emit['when'])}:", f"            {line}")
        else:
            self._put(f"        {line}")

    def _delegate(self, order: dict[str, Any], told: Callable[[Any], str]) -> str:
        fields = ", ".join(f"{n}={told(v)}" for n, v in order.get("fields", {}).items())
        start = f"foreign_{order['start']}" if order["start"] in self._foreign else "wa.StartEvent"
        made = f"{start}({fields if start != 'wa.StartEvent' else ''})"
        within = f", timeout_s={order['timeout_s']}" if order.get("timeout_s") is not None else ""
        return f"wa.delegate({order['agent'].lower()!r}, {made}{within})"

    def _parameter(self, index: int, parameter: dict[str, Any]) -> str:
        kind, types_ = parameter["kind"], parameter["type"].replace("|", " | ")
        if kind == "inject":
            if parameter["type"] == "StepConfig":
                return f"{parameter['name']}: StepConfig_{index}"
            return f"{parameter['name']}: {INJECTABLE.get(parameter['type'], parameter['type'])}"
        annotation = {
            "required": types_,
            "optional": f"{types_} | None",
            "list": f"list[{types_}]",
            "fixed_list": f"wa.FixedList({types_}, {parameter.get('n')})",
        }[kind]
        if parameter.get("nullable"):
            annotation += " | None"
        default = " = None" if kind == "optional" or parameter.get("nullable") else ""
        return f"{parameter['name']}: {annotation}{default}"

    def _expression(self, text: str, parameters: list[dict[str, Any]]) -> str:
        tree = ast.parse(text, mode="eval")
        return ast.unparse(_Names(parameters).visit(tree))


class _Names(ast.NodeTransformer):
    """Names of the case's expression language, as the rendered body has them."""

    TYPES: Mapping[str, Callable[[str], bool]] = {
        "config": lambda kind: kind.endswith("Config") and kind != "StepConfig",
        "run": lambda kind: kind == "RunContext",
        "thread": lambda kind: kind == "ThreadContext",
    }

    def __init__(self, parameters: list[dict[str, Any]]) -> None:
        self._events = {p["name"] for p in parameters if p["kind"] != "inject"}
        self._injected = {p["name"]: p["type"] for p in parameters if p["kind"] == "inject"}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._events or node.id in self._injected:
            return node
        if node.id == "attempt":
            return ast.Call(ast.Name("attempt_now"), [], [])
        if node.id in self.TYPES:
            found = next((n for n, kind in self._injected.items() if self.TYPES[node.id](kind)), node.id)
            return ast.Name(found)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "self_has":
            return ast.Call(ast.Name("hasattr"), [ast.Name("self"), *node.args], [])
        return node


def _injected(step: dict[str, Any], what: str) -> str:
    """The parameter that holds the run's or the thread's context, or the displayer."""
    kind = {"run": "RunContext", "thread": "ThreadContext", "display": "EventDisplayer"}[what]
    return str(next(p["name"] for p in step["params"] if p["kind"] == "inject" and p["type"] == kind))


def _parents_first(events: Mapping[str, dict[str, Any]]) -> list[str]:
    ordered: list[str] = []

    def put(name: str) -> None:
        if name in ordered:
            return
        parent = events[name].get("extends")
        if parent is not None and parent in events:
            put(parent)
        ordered.append(name)

    for name in events:
        put(name)
    return ordered


def _flag(events: Mapping[str, dict[str, Any]], name: str, flag: str) -> bool:
    """Whether an event or one that it derives from has a flag."""
    event = events.get(name, {})
    return bool(event.get(flag)) or ("extends" in event and _flag(events, event["extends"], flag))


def _type_of(value: Any) -> str:
    return type(value).__name__ if isinstance(value, bool | int | float | str) else "Any"

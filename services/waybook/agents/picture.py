"""An agent as a picture: its steps, the events between them, and what a run made of it."""

import re
from collections import Counter
from typing import Literal

import msgspec

from waybook.agents.agent import Agent
from waybook.agents.delegation import AgentRequest
from waybook.agents.reading import Sheet, StepBody, read
from waybook.engine.run import Action, Published, Run
from waybook.events.typed import ExternalEvent, RequestEvent, StartEvent, StopEvent

MOST_BRANCHES = 12
MOST_LABEL = 40
_NO_LABEL = re.compile(r"[^\w .,:/@+-]")
"""What a label of a branch is shown without: it may hold anything, and must not change the picture."""

NodeKind = Literal["step", "start", "external", "stop", "agent", "request"]
NodeState = Literal["none", "waiting", "offered", "running", "completed", "failed"]
EdgeKind = Literal["required", "optional", "many"]


class Node(msgspec.Struct, frozen=True):
    """A step, an event that comes from outside or ends the run, or other agents. `count`: executions, or events."""

    id: str
    kind: NodeKind
    label: str
    notes: tuple[str, ...] = ()
    state: NodeState = "none"
    count: int | None = None


class Edge(msgspec.Struct, frozen=True):
    """An event that one node gives to another. `count`: how many there are in the run, 0: it did not go that way."""

    source: str
    target: str
    event: str
    kind: EdgeKind = "required"
    count: int | None = None


class Picture(msgspec.Struct, frozen=True):
    """Nodes and edges, in the order of the class."""

    agent: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def picture(agent: type[Agent], run: Run | None = None) -> Picture:
    """The picture of an agent; with a run, painted with what it did in its current walk."""
    sheet = read(agent)
    drawing = _Drawing(sheet, run)
    return Picture(sheet.name, drawing.nodes(), drawing.edges())


class _Drawing:
    def __init__(self, sheet: Sheet, run: Run | None) -> None:
        self._sheet = sheet
        self._run = run
        there = [p for events in run.visible.values() for p in events] if run is not None else []  # in this walk
        self._published = Counter(p.event for p in there)
        self._returned = Counter((_step_of(run, p), p.event) for p in there) if run is not None else Counter()
        self._producers: dict[str, list[str]] = {}
        for body in sheet.bodies:
            for event in sorted(body.signature.outputs):
                self._producers.setdefault(event, []).append(f"step_{body.name}")
        classes = {c.__name__: c for c in sheet.classes}
        self._entries = {n: c for n, c in classes.items() if issubclass(c, StartEvent | ExternalEvent)}
        self._stops = [n for n, c in classes.items() if issubclass(c, StopEvent) and n in self._producers]
        self._requests = [
            n
            for n, c in classes.items()
            if issubclass(c, RequestEvent) and not issubclass(c, AgentRequest) and n in self._producers
        ]
        self._asks = any(issubclass(classes[n], AgentRequest) for n in self._producers if n in classes)

    def nodes(self) -> tuple[Node, ...]:
        taken = {t for b in self._sheet.bodies for p in b.signature.parameters for t in p.types}
        found = [
            Node(f"event_{n}", "start" if issubclass(c, StartEvent) else "external", n, count=self._count(n))
            for n, c in self._entries.items()
            if n in taken
        ]
        found += [self._step(body) for body in self._sheet.bodies]
        if self._asks:
            found.append(Node("agents", "agent", "other agents"))
        found += [Node(f"event_{n}", "request", n, count=self._count(n)) for n in self._requests]
        found += [Node(f"event_{n}", "stop", n, state=self._reached(n), count=self._count(n)) for n in self._stops]
        return tuple(found)

    def _step(self, body: StepBody) -> Node:
        notes = []
        if body.options.precondition is not None:
            notes.append(f"if {getattr(body.options.precondition, '__name__', 'it may')}")
        if body.options.max_executions is not None:
            notes.append(f"at most {body.options.max_executions}")
        if not body.options.stop_on_error:
            notes.append("errors ignored")
        state, count = self._state(body.name)
        branches = self._branches(body.name)
        notes += (self._stand(body.name) if not 0 < len(branches) <= MOST_BRANCHES else []) + branches
        return Node(f"step_{body.name}", "step", body.name, tuple(notes), state, count)

    def edges(self) -> tuple[Edge, ...]:
        found: list[Edge] = []
        for body in self._sheet.bodies:
            for parameter in body.signature.parameters:
                kind: EdgeKind = (
                    "many" if "list" in parameter.kind else "optional" if parameter.is_optional else "required"
                )
                for event in parameter.types:
                    for source in self._sources(event):
                        count = self._count(event, source)
                        found.append(Edge(source, f"step_{body.name}", event, kind, count))
            found += [
                Edge(f"step_{body.name}", f"event_{event}", event, "required", self._count(event))
                for event in sorted(body.signature.outputs)
                if event in self._stops or event in self._requests
            ]
            if self._asks and "AgentRequest" in body.signature.outputs:
                found.append(
                    Edge(f"step_{body.name}", "agents", "AgentRequest", "required", self._count("AgentRequest"))
                )
        return tuple(found)

    def _sources(self, event: str) -> list[str]:
        sources = list(self._producers.get(event, ()))
        if event in self._entries:
            sources.insert(0, f"event_{event}")
        if event == "Unanswered":
            sources += [f"event_{request}" for request in self._requests]
        if event in ("AgentResponse", "AgentFailure"):
            sources.append("agents")
        return sources

    def _count(self, event: str, source: str = "") -> int | None:
        """How many of these events the run holds; with a step as `source`, how many of them it returned."""
        if self._run is None:
            return None
        return self._returned[source, event] if source.startswith("step_") else self._published[event]

    def _reached(self, event: str) -> NodeState:
        return "completed" if self._published[event] else "none"

    def _stand(self, step: str) -> list[str]:
        """How many executions of the step stand how, where not all stand the same."""
        run = self._run
        if run is None:
            return []
        states = Counter[str](action.status for action in self._newest(run, step))
        states["offered"] += sum(offer.step == step for offer in run.offers.values())
        there = [f"{count} {state}" for state, count in states.items() if count]
        return [", ".join(there)] if len(there) > 1 else []

    def _branches(self, step: str) -> list[str]:
        """What became of the step in each branch that it works on."""
        run = self._run
        if run is None:
            return []
        states: dict[str, str] = {a.branch: a.status for a in self._newest(run, step) if a.branch is not None}
        states |= {o.branch: "offered" for o in run.offers.values() if o.step == step and o.branch is not None}
        notes = [f"{_NO_LABEL.sub(' ', label)[:MOST_LABEL]}: {state}" for label, state in states.items()]
        left = len(notes) - MOST_BRANCHES
        return notes if left <= 0 else [*notes[:MOST_BRANCHES], f"and {left} more"]

    @staticmethod
    def _newest(run: Run, step: str) -> list[Action]:
        """The newest attempt at each of the step's executions in the current walk."""
        return [run.actions[a] for k, a in run.executions.items() if k.startswith(f"{run.walk}:{step}:")]

    def _state(self, step: str) -> tuple[NodeState, int | None]:
        run = self._run
        if run is None:
            return "none", None
        newest = self._newest(run, step)
        offered = any(o.step == step for o in run.offers.values())
        states = {a.status for a in newest}
        if "failed" in states:
            return "failed", len(newest)
        if "running" in states or "released" in states:
            return "running", len(newest)
        if offered:
            return "offered", len(newest)
        if newest:
            return "completed", len(newest)
        return "none" if run.ended else "waiting", 0


def _step_of(run: Run, published: Published) -> str:
    """The node of the step that returned an event; empty for one from outside."""
    action = run.actions.get(published.action) if published.action is not None else None
    return f"step_{action.step}" if action is not None else ""

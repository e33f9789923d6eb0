"""A picture of an agent as Mermaid text."""

from collections.abc import Mapping
from html import escape

from waybook.agents.picture import Edge, Node, NodeKind, NodeState, Picture

_SHAPES: Mapping[NodeKind, tuple[str, str]] = {
    "step": ("[", "]"),
    "start": ("([", "])"),
    "external": ("[/", "/]"),
    "stop": ("((", "))"),
    "agent": ("[[", "]]"),
    "request": ("{{", "}}"),
}
_COLOURS: Mapping[NodeState, str] = {
    "waiting": "fill:#f4f4f4,stroke:#999999,color:#555555",
    "offered": "fill:#fff4ce,stroke:#b58900",
    "running": "fill:#cfe8ff,stroke:#1f6feb",
    "completed": "fill:#d6f5d6,stroke:#2e7d32",
    "failed": "fill:#ffd6d6,stroke:#c62828",
}
_ARROWS = {"required": "-->", "optional": "-.->", "many": "==>"}


def mermaid(drawn: Picture) -> str:
    """Mermaid's flowchart: dotted arrows are optional inputs, thick ones lists, pale ones what a run did not take."""
    lines = ["flowchart TD"]
    lines += [f"    {_node(node)}" for node in drawn.nodes]
    lines += [f"    {_edge(edge)}" for edge in drawn.edges]
    unused = [str(number) for number, edge in enumerate(drawn.edges) if edge.count == 0]
    if unused:
        lines.append(f"    linkStyle {','.join(unused)} stroke:#cccccc,color:#999999")
    painted: dict[NodeState, list[str]] = {}
    for node in drawn.nodes:
        if node.state != "none":
            painted.setdefault(node.state, []).append(node.id)
    lines += [f"    classDef {state} {_COLOURS[state]}" for state in painted]
    lines += [f"    class {','.join(ids)} {state}" for state, ids in painted.items()]
    return "\n".join(lines) + "\n"


def _node(node: Node) -> str:
    left, right = _SHAPES[node.kind]
    label = node.label if node.kind != "step" or node.count is None else f"{node.label} ×{node.count}"
    text = "<br/>".join((_safe(label), *(f"<i>{_safe(note)}</i>" for note in node.notes)))
    return f'{node.id}{left}"{text}"{right}'


def _edge(edge: Edge) -> str:
    label = edge.event if not edge.count or edge.count == 1 else f"{edge.event} ×{edge.count}"
    return f'{edge.source} {_ARROWS[edge.kind]}|"{_safe(label)}"| {edge.target}'


def _safe(text: str) -> str:
    """A text that ends neither the quotes around it nor the markup inside: a lambda is named `<lambda>`."""
    return escape(text, quote=False).replace('"', "#quot;")

"""A picture of an agent as SVG: layers from top to bottom, without any other program."""

from collections.abc import Mapping
from html import escape
from unicodedata import east_asian_width

import msgspec

from waybook.agents.layout import Route, Tie, lay_out
from waybook.agents.picture import Edge, Node, NodeState, Picture

_FILL: Mapping[NodeState, tuple[str, str]] = {
    "none": ("#ffffff", "#444444"),
    "waiting": ("#f4f4f4", "#999999"),
    "offered": ("#fff4ce", "#b58900"),
    "running": ("#cfe8ff", "#1f6feb"),
    "completed": ("#d6f5d6", "#2e7d32"),
    "failed": ("#ffd6d6", "#c62828"),
}
_DASH = {"required": "", "optional": ' stroke-dasharray="5 4"', "many": ""}
_WIDE = {"required": "1.3", "optional": "1.3", "many": "2.6"}

_HEAD = (
    'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"'
)
_SMALL = ' font-size="10" fill="#666666"'
_HALO = 'stroke="#ffffff" stroke-width="3" paint-order="stroke"'
_DARK, _PALE = "#444444", "#cccccc"

CHARACTER, LINE = 7.2, 16.0  # pixels of a letter and of a line of text
SMALL_CHARACTER, SMALL_LINE = 6.6, 14.0  # and of a label
LOOP = 26.0  # how far an arrow back to its own box reaches


class _Box(msgspec.Struct):
    node: Node
    lines: tuple[str, ...]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(_letters(line) for line in self.lines) * CHARACTER + 24

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 16


def svg(drawn: Picture) -> str:
    """An SVG document: dashed lines are optional inputs, thick ones lists, pale ones what a run did not take."""
    boxes = {node.id: _Box(node, _lines(node)) for node in drawn.nodes}
    bundles = list(_bundled(drawn.edges).values())
    labels = [_label(edges) for edges in bundles]
    ties = [_tie(edges, label) for edges, label in zip(bundles, labels, strict=True)]
    plan = lay_out({name: (box.width, box.height) for name, box in boxes.items()}, ties, SMALL_LINE)
    for name, spot in plan.boxes.items():
        boxes[name].x, boxes[name].y = spot.x, spot.y
    size = f'width="{plan.width:.0f}" height="{plan.height:.0f}" viewBox="0 0 {plan.width:.0f} {plan.height:.0f}"'
    markers = "".join(
        f'<marker id="{name}" {_HEAD}><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
        for name, colour in (("arrow", _DARK), ("pale", _PALE))
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>{escape(drawn.agent)}</title>",
        f"<defs>{markers}</defs>",
    ]
    arrows = list(zip(bundles, labels, plan.routes, strict=True))
    parts += [_arrow(edges, route, boxes[edges[0].source]) for edges, _, route in arrows]
    parts += [_shape(box) for box in boxes.values()]
    parts += [_text(label, route, boxes[edges[0].source]) for edges, label, route in arrows]
    return "\n".join([*parts, "</svg>", ""])


def _lines(node: Node) -> tuple[str, ...]:
    label = node.label if node.kind != "step" or node.count is None else f"{node.label} ×{node.count}"
    return (label, *node.notes)


def _letters(text: str) -> float:
    """How many letters of usual width a text is as wide as."""
    return sum(2.0 if east_asian_width(letter) in "WF" else 1.0 for letter in text)


def _label(edges: list[Edge]) -> str:
    return ", ".join(dict.fromkeys(e.event if not e.count or e.count == 1 else f"{e.event} ×{e.count}" for e in edges))


def _tie(edges: list[Edge], label: str) -> Tie:
    first = edges[0]
    reach = LOOP if first.source == first.target else 0.0
    return Tie(first.source, first.target, _letters(label) * SMALL_CHARACTER + reach)


def _bundled(edges: tuple[Edge, ...]) -> dict[tuple[str, str], list[Edge]]:
    """Edges by the nodes that they join: one arrow each."""
    found: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        found.setdefault((edge.source, edge.target), []).append(edge)
    return found


def _arrow(edges: list[Edge], route: Route, source: _Box) -> str:
    kind = edges[0].kind
    if route.passes:
        path = _path(route)
    else:  # back to its own box, on the right
        x, y = source.x + source.width / 2, source.y
        path = f"M{x:.1f},{y - 8:.1f} C{x + LOOP:.1f},{y - 16:.1f} {x + LOOP:.1f},{y + 16:.1f} {x:.1f},{y + 8:.1f}"
    is_pale = all(e.count == 0 for e in edges)
    return (
        f'<path d="{path}" fill="none" stroke="{_PALE if is_pale else _DARK}" stroke-width="{_WIDE[kind]}"{_DASH[kind]} '
        f'marker-end="url(#{"pale" if is_pale else "arrow"})"/>'
    )


def _path(route: Route) -> str:
    """From box to box: straight through the rows, bent between them."""
    x, y = route.begin
    parts = [f"M{x:.1f},{y:.1f}"]
    stations = [(s.x, s.bottom, s.top) if route.is_up else (s.x, s.top, s.bottom) for s in route.passes]
    for at, enters, leaves in (*stations, (*route.end, route.end[1])):
        bend = (y + enters) / 2
        parts.append(f"C{x:.1f},{bend:.1f} {at:.1f},{bend:.1f} {at:.1f},{enters:.1f}")
        if leaves != enters:
            parts.append(f"L{at:.1f},{leaves:.1f}")
        x, y = at, leaves
    return " ".join(parts)


def _text(label: str, route: Route, source: _Box) -> str:
    if route.label is not None:
        x, y, anchor = route.label.x, route.label.y, "middle"
    else:
        x, y, anchor = source.x + source.width / 2 + LOOP - 4, source.y, "start"
    return (
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}" fill="#333333" font-size="11" {_HALO}>'
        f"{escape(label)}</text>"
    )


def _shape(box: _Box) -> str:
    fill, stroke = _FILL[box.node.state]
    x, y = box.x - box.width / 2, box.y - box.height / 2
    radius = 4 if box.node.kind in ("step", "agent") else box.height / 2
    shape = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{2 if box.node.kind == "stop" else 1.3}"/>'
    )
    first = box.y - (len(box.lines) - 1) * LINE / 2 + 4
    texts = [
        f'<text x="{box.x:.1f}" y="{first + i * LINE:.1f}" text-anchor="middle"'
        f"{_SMALL if i else ''}>{escape(line)}</text>"
        for i, line in enumerate(box.lines)
    ]
    return shape + "".join(texts)

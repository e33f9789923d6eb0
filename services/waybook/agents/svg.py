"""A picture of an agent as SVG: layers from top to bottom, without any other program."""

from collections.abc import Mapping
from html import escape

import msgspec

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

_HEAD = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
_SMALL = ' font-size="10" fill="#666666"'

CHARACTER, LINE = 7.2, 16.0  # pixels of a letter and of a line of text
GAP_X, GAP_Y, MARGIN = 36.0, 64.0, 20.0


class _Box(msgspec.Struct):
    node: Node
    lines: tuple[str, ...]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * CHARACTER + 24

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 16


def svg(drawn: Picture) -> str:
    """An SVG document: dashed lines are optional inputs, thick ones lists."""
    boxes = {node.id: _Box(node, _lines(node)) for node in drawn.nodes}
    layers = _layers(drawn)
    _place(layers, boxes)
    width = max((b.x + b.width / 2 for b in boxes.values()), default=0.0) + MARGIN
    height = max((b.y + b.height / 2 for b in boxes.values()), default=0.0) + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>{escape(drawn.agent)}</title>",
        f'<defs><marker id="arrow" {_HEAD}><path d="M0,0 L8,4 L0,8 z" fill="#444444"/></marker></defs>',
    ]
    for edges in _bundled(drawn.edges).values():
        parts.append(_arrow(edges, boxes))
    parts += [_shape(box) for box in boxes.values()]
    return "\n".join([*parts, "</svg>", ""])


def _lines(node: Node) -> tuple[str, ...]:
    label = node.label if node.kind != "step" or node.count is None else f"{node.label} ×{node.count}"
    return (label, *node.notes)


def _layers(drawn: Picture) -> list[list[str]]:
    """Nodes by the longest way from an entry, loops left out."""
    depth = {node.id: 0 for node in drawn.nodes}
    following: dict[str, list[str]] = {}
    for edge in drawn.edges:
        following.setdefault(edge.source, []).append(edge.target)
    entered: set[str] = set()
    done: set[str] = set()
    order: list[str] = []
    back: set[tuple[str, str]] = set()

    def visit(name: str) -> None:
        entered.add(name)
        for target in following.get(name, ()):
            if target in entered and target not in done:
                back.add((name, target))
            elif target not in entered:
                visit(target)
        done.add(name)
        order.append(name)

    for node in drawn.nodes:
        if node.id not in entered:
            visit(node.id)
    for name in reversed(order):
        for target in following.get(name, ()):
            if (name, target) not in back:
                depth[target] = max(depth[target], depth[name] + 1)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for node in drawn.nodes:
        layers[depth[node.id]].append(node.id)
    return layers


def _place(layers: list[list[str]], boxes: dict[str, _Box]) -> None:
    widths = [sum(boxes[n].width for n in layer) + GAP_X * (len(layer) - 1) for layer in layers]
    middle = max(widths, default=0.0) / 2 + MARGIN + GAP_X
    y = MARGIN
    for layer, width in zip(layers, widths, strict=True):
        height = max(boxes[n].height for n in layer)
        x = middle - width / 2
        for name in layer:
            boxes[name].x, boxes[name].y = x + boxes[name].width / 2, y + height / 2
            x += boxes[name].width + GAP_X
        y += height + GAP_Y


def _bundled(edges: tuple[Edge, ...]) -> dict[tuple[str, str], list[Edge]]:
    """Edges by the nodes that they join: one arrow each."""
    found: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        found.setdefault((edge.source, edge.target), []).append(edge)
    return found


def _arrow(edges: list[Edge], boxes: dict[str, _Box]) -> str:
    source, target, kind = boxes[edges[0].source], boxes[edges[0].target], edges[0].kind
    names = ", ".join(dict.fromkeys(e.event if not e.count or e.count == 1 else f"{e.event} ×{e.count}" for e in edges))
    if target.y > source.y:
        x1, y1, x2, y2 = source.x, source.y + source.height / 2, target.x, target.y - target.height / 2
        bend = (y2 - y1) / 2
        path = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}"
        at = ((x1 + x2) / 2, (y1 + y2) / 2)
    else:  # a loop goes round on the right
        x1, y1, x2, y2 = source.x + source.width / 2, source.y, target.x + target.width / 2, target.y
        out = max(x1, x2) + GAP_X
        path = f"M{x1:.1f},{y1:.1f} C{out:.1f},{y1:.1f} {out:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
        at = (out - GAP_X / 4, (y1 + y2) / 2)
    colour = "#cccccc" if all(e.count == 0 for e in edges) else "#444444"
    line = (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{_WIDE[kind]}"{_DASH[kind]} '
        'marker-end="url(#arrow)"/>'
    )
    text = f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="middle" fill="#333333" font-size="11">{escape(names)}</text>'
    return line + text


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

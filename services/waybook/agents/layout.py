"""Where the boxes and arrows of a picture go: rows from top to bottom, and room of its own for every label.

An arrow has a place in each row that it passes, so that it runs under no box and its label on no other one.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import msgspec

ORDER_SWEEPS, PLACE_SWEEPS = 12, 16
GAP_BOX, GAP_ARROW, GAP_ROW, MARGIN = 30.0, 12.0, 18.0, 20.0  # pixels
PORT = 18.0
"""How far arrows are apart where they touch a box."""


class Spot(msgspec.Struct, eq=False):
    """A box, or the place where an arrow passes a row. `x`, `y`: its middle; `top`, `bottom`: those of its row."""

    width: float
    height: float
    is_box: bool
    x: float = 0.0
    y: float = 0.0
    top: float = 0.0
    bottom: float = 0.0
    place: int = 0
    above: list["Spot"] = []
    below: list["Spot"] = []


class Tie(msgspec.Struct, frozen=True):
    """An arrow between two boxes, with the width of its label."""

    source: str
    target: str
    label: float


class Route(msgspec.Struct, eq=False):
    """How an arrow runs: the spots that it passes, that of its label among them; none for one back to its own box.

    `begin` and `end`: where it touches its boxes. `is_up`: it runs from the lower side of the picture to the upper.
    """

    passes: list[Spot]
    label: Spot | None
    is_up: bool
    begin: tuple[float, float] = (0.0, 0.0)
    end: tuple[float, float] = (0.0, 0.0)


class Layout(msgspec.Struct):
    """Spots by the names of their boxes, routes in the order of the ties, and the size of it all."""

    boxes: dict[str, Spot]
    routes: list[Route]
    width: float
    height: float


def lay_out(sizes: Mapping[str, tuple[float, float]], ties: Sequence[Tie], label_height: float) -> Layout:
    """Places boxes of these sizes. Pure; the same picture every time."""
    depth = _depths(list(sizes), ties)
    rows: list[list[Spot]] = [[] for _ in range(2 * max(depth.values(), default=0) + 1)]
    boxes: dict[str, Spot] = {}
    for name, (width, height) in sizes.items():
        own = max((tie.label for tie in ties if tie.source == tie.target == name), default=0.0)
        boxes[name] = Spot(width + 2 * own, height, True)
        rows[2 * depth[name]].append(boxes[name])
    routes = [_route(tie, boxes, depth, rows, label_height) for tie in ties]
    _order(rows)
    _place(rows)
    _ports(ties, routes, boxes, sizes)
    right = max((s.x + s.width / 2 for row in rows for s in row), default=0.0)
    bottom = max((s.bottom for row in rows for s in row), default=0.0)
    return Layout(boxes, routes, right + MARGIN, bottom + MARGIN)


def _route(
    tie: Tie, boxes: Mapping[str, Spot], depth: Mapping[str, int], rows: list[list[Spot]], label_height: float
) -> Route:
    if tie.source == tie.target:
        return Route([], None, False)
    is_up = depth[tie.source] > depth[tie.target]
    first, last = (tie.target, tie.source) if is_up else (tie.source, tie.target)
    labelled = 2 * depth[tie.source] + (-1 if is_up else 1)
    passes: list[Spot] = []
    label = None
    for row in range(2 * depth[first] + 1, 2 * depth[last]):
        spot = Spot(tie.label, label_height, False) if row == labelled else Spot(1.0, 0.0, False)
        label = spot if row == labelled else label
        rows[row].append(spot)
        passes.append(spot)
    chain = [boxes[first], *passes, boxes[last]]
    for upper, lower in pairwise(chain):
        upper.below.append(lower)
        lower.above.append(upper)
    return Route(passes[::-1] if is_up else passes, label, is_up)


def _depths(names: list[str], ties: Sequence[Tie]) -> dict[str, int]:
    """How many arrows lead to each box at most, loops left out."""
    following: dict[str, list[str]] = {name: [] for name in names}
    for tie in ties:
        following[tie.source].append(tie.target)
    order: list[str] = []
    under_way: set[str] = set()
    done: set[str] = set()
    back: set[tuple[str, str]] = set()
    for name in names:
        path = [(name, iter(following[name]))] if name not in done else []
        under_way.update(one for one, _ in path)
        while path:
            here, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                done.add(here)
                order.append(here)
            elif target in under_way and target not in done:
                back.add((here, target))
            elif target not in done:
                under_way.add(target)
                path.append((target, iter(following[target])))
    depth = dict.fromkeys(names, 0)
    for name in reversed(order):
        for target in following[name]:
            if (name, target) not in back:
                depth[target] = max(depth[target], depth[name] + 1)
    return depth


def _order(rows: list[list[Spot]]) -> None:
    """Puts the spots of each row into an order in which few arrows cross."""
    _number(rows)
    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(ORDER_SWEEPS):
        is_down = sweep % 2 == 0
        for row in rows if is_down else reversed(rows):
            row.sort(key=lambda spot: _middle(spot, spot.above if is_down else spot.below))
            _number([row])
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best
    _number(rows)


def _number(rows: Sequence[Sequence[Spot]]) -> None:
    for row in rows:
        for place, spot in enumerate(row):
            spot.place = place


def _middle(spot: Spot, others: Sequence[Spot]) -> float:
    return fmean(other.place for other in others) if others else float(spot.place)


def _crossings(rows: Sequence[Sequence[Spot]]) -> int:
    count = 0
    for row in rows:
        seen: list[int] = []
        for spot in row:
            targets = [lower.place for lower in spot.below]
            count += sum(len(seen) - bisect_right(seen, target) for target in targets)
            for target in targets:
                insort(seen, target)
    return count


def _place(rows: list[list[Spot]]) -> None:
    """Gives every spot its place: near those that it is joined with, and none on another."""
    for row in rows:
        _spread(row, [0.0] * len(row))
    for sweep in range(PLACE_SWEEPS):
        is_down = sweep % 2 == 0
        is_last = sweep >= PLACE_SWEEPS - 4
        for row in rows if is_down else reversed(rows):
            wanted = []
            for spot in row:
                others = [*spot.above, *spot.below] if is_last else spot.above if is_down else spot.below
                wanted.append(fmean(other.x for other in others) if others else spot.x)
            _spread(row, wanted)
    left = min((spot.x - spot.width / 2 for row in rows for spot in row), default=0.0)
    y = MARGIN
    for row in rows:
        height = max((spot.height for spot in row), default=0.0)
        for spot in row:
            spot.x += MARGIN - left
            spot.y, spot.top, spot.bottom = y + height / 2, y, y + height
        y += height + GAP_ROW


def _spread(row: Sequence[Spot], wanted: Sequence[float]) -> None:
    """The places next to the wanted ones that keep the order and the distances (least squares, neighbours pooled)."""
    shifts, shift = [0.0], 0.0
    for left, right in pairwise(row):
        gap = GAP_BOX if left.is_box and right.is_box else GAP_ARROW
        shift += (left.width + right.width) / 2 + gap
        shifts.append(shift)
    pools: list[tuple[float, int]] = []  # mean and number of spots that stand side by side
    for want, by in zip(wanted, shifts, strict=False):
        mean, count = want - by, 1
        while pools and pools[-1][0] > mean:
            before, more = pools.pop()
            mean, count = (mean * count + before * more) / (count + more), count + more
        pools.append((mean, count))
    places = [mean for mean, count in pools for _ in range(count)]
    for spot, place, by in zip(row, places, shifts, strict=False):
        spot.x = place + by


def _ports(
    ties: Sequence[Tie], routes: Sequence[Route], boxes: Mapping[str, Spot], sizes: Mapping[str, tuple[float, float]]
) -> None:
    """Where arrows touch the boxes: beside each other, in the order in which they come."""
    sides: dict[tuple[str, bool], list[tuple[float, Route, bool]]] = {}
    for tie, route in zip(ties, routes, strict=True):
        if route.passes:
            sides.setdefault((tie.source, not route.is_up), []).append((route.passes[0].x, route, True))
            sides.setdefault((tie.target, route.is_up), []).append((route.passes[-1].x, route, False))
    for (name, is_bottom), touching in sides.items():
        touching.sort(key=lambda one: one[0])
        spot, (width, height) = boxes[name], sizes[name]
        step = min(PORT, (width - 16) / len(touching))
        y = spot.y + height / 2 if is_bottom else spot.y - height / 2
        for number, (_, route, begins) in enumerate(touching):
            at = (spot.x + (number - (len(touching) - 1) / 2) * step, y)
            if begins:
                route.begin = at
            else:
                route.end = at

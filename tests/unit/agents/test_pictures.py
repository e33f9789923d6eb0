"""An agent's SVG can be read: nothing lies on anything else, and the same agent always looks the same."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from waybook.agents import Agent, Event, NonRetryable, StartEvent, StopEvent, step
from waybook.agents.layout import Tie, lay_out
from waybook.agents.picture import Edge, Node, Picture, picture
from waybook.agents.svg import svg
from waybook.inbox.agent import Inbox
from waybook.services.bootstrap.loading import load_agent
from waybook.testing.rehearsal import rehearsal

SAMPLES = Path(__file__).parents[3] / "samples" / "agents"
NAMES = [
    "bounded_loop.py:Writer", "count_at_run_time.py:Searcher", "human_approval.py:Buyer",
    "retrieval_and_answer.py:Assistant", "sub_agent.py:Teacher", "reflection.py:Extractor",
]  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def large() -> Picture:
    """Sixty steps, each of which leads to several others, some of them back."""
    nodes = tuple(
        Node(f"step_{n}", "step", f"step_number_{n}", ("at most 3",) if n % 7 == 0 else ()) for n in range(60)
    )
    edges = [
        Edge(f"step_{n}", f"step_{m}", f"Event{m}")
        for n in range(60)
        for m in (n + 1, n + 3, 2 * n + 1, n - 4 if n % 17 == 5 else 60, n if n % 20 == 9 else 60)
        if m < 60
    ]
    return Picture("large", nodes, tuple(edges))


def pictures() -> Iterator[tuple[str, Picture]]:
    agents: list[type[Agent]] = [Inbox, *(load_agent(f"{SAMPLES}/{name}") for name in NAMES)]
    yield from ((agent.__name__, picture(agent)) for agent in agents)
    yield "large", large()
    yield "nothing", Picture("nothing", (), ())


def boxes_and_labels(drawn: str) -> tuple[list[Box], list[Box]]:
    root = ElementTree.fromstring(drawn)
    boxes = [
        tuple(float(one.get(side) or 0) for side in ("x", "y", "width", "height")) for one in root.iter(f"{SVG}rect")
    ]
    labels: list[Box] = []
    for one in root.iter(f"{SVG}text"):
        if one.get("font-size") == "11":
            x, y, width = float(one.get("x") or 0), float(one.get("y") or 0), len(one.text or "") * 6.0
            left = x - width / 2 if one.get("text-anchor") == "middle" else x
            labels.append((left, y - 9, width, 11))
    return boxes, labels  # type: ignore[return-value]


def lie_on_each_other(one: Box, other: Box) -> bool:
    return all(one[i] < other[i] + other[i + 2] and other[i] < one[i] + one[i + 2] for i in (0, 1))


@pytest.mark.parametrize(("name", "drawn"), list(pictures()), ids=lambda one: one if isinstance(one, str) else "")
def test_no_box_and_no_label_lies_on_another(name: str, drawn: Picture) -> None:
    text = svg(drawn)
    assert text == svg(drawn)
    boxes, labels = boxes_and_labels(text)
    assert len(boxes) == len(drawn.nodes)
    root = ElementTree.fromstring(text)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    assert not [(a, b) for a, b in combinations([*boxes, *labels], 2) if lie_on_each_other(a, b)]
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in [*boxes, *labels])


def test_an_arrow_that_is_long_runs_under_no_box() -> None:
    """It has a place of its own in every row that it passes."""
    sizes = {str(n): (200.0, 40.0) for n in range(6)}
    ties = [*(Tie(str(n), str(n + 1), 30) for n in range(5)), Tie("0", "5", 30), Tie("5", "0", 30)]
    plan = lay_out(sizes, ties, 14)
    for route in plan.routes:
        for spot in route.passes:
            for box in plan.boxes.values():
                assert spot.y != box.y or abs(spot.x - box.x) >= box.width / 2


def test_a_chain_of_a_thousand_steps_can_be_drawn() -> None:
    nodes = tuple(Node(f"n{n}", "step", f"n{n}") for n in range(1200))
    edges = tuple(Edge(f"n{n}", f"n{n + 1}", "E") for n in range(1199))
    assert svg(Picture("long", nodes, edges)).count("<rect") == 1200


class Asked(StartEvent, frozen=True, kw_only=True):
    pass


class Piece(Event, frozen=True, kw_only=True):
    number: int


class Done(StopEvent, frozen=True, kw_only=True):
    pass


class Wide(Agent):
    """Three pieces, one of which cannot be done."""

    @step
    async def split(self, asked: Asked) -> list[Piece]:
        return [Piece(number=number) for number in range(3)]

    @step
    async def work(self, piece: Piece) -> Done | None:
        if piece.number == 1:
            raise NonRetryable("this one not")
        return None


async def test_how_many_executions_stand_how_is_painted_where_they_differ() -> None:
    async with rehearsal(Wide) as stage:
        run = await stage.start(Asked())
        painted = {node.label: node.notes for node in picture(Wide, stage.run(run)).nodes}
    assert painted["work"] == ("2 completed, 1 failed",)
    assert painted["split"] == ()

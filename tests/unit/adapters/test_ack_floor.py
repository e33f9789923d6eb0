"""Up to where everything is done: what a purge may take away."""

import hypothesis.strategies as st
from hypothesis import given

from waybook.adapters.nats.bulk_ack import Floor


class Server:
    """A work queue's consumer: delivers in order, again what is not done, and loses some of what it sends."""

    def __init__(self, sequences: list[int]) -> None:
        self.waiting = sorted(sequences)
        self.out: list[int] = []
        self.number = 0

    def next(self, again: int | None) -> tuple[int, int] | None:
        """The next delivery's number and sequence: of one that is out, or a new one."""
        if again is not None and self.out:
            sequence = self.out[again % len(self.out)]
        elif self.waiting:
            sequence = self.waiting.pop(0)
            self.out.append(sequence)
        else:
            return None
        self.number += 1
        return self.number, sequence


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.none()),
        st.tuples(st.just("again"), st.integers(0, 9)),
        st.tuples(st.just("done"), st.integers(0, 9)),
        st.tuples(st.just("lose"), st.none()),
    ),
    max_size=60,
)


@given(st.sets(st.integers(1, 200), min_size=1, max_size=30), DEEDS)
def test_no_floor_is_above_a_message_that_is_not_done(sequences: set[int], deeds: list[tuple[str, int | None]]) -> None:
    """Whatever is delivered, again or not at all: while it is whole, all that is needed is above the floor."""
    server, floor = Server(list(sequences)), Floor()
    for deed, which in deeds:
        if deed == "done" and server.out and which is not None:
            sequence = server.out.pop(which % len(server.out))
            floor.done(sequence)
        elif deed in ("deliver", "again"):
            delivery = server.next(which)
            if delivery is not None:
                floor.delivered(*delivery)
        elif deed == "lose":
            server.next(None)
        if floor.whole:
            needed = [*server.out, *server.waiting]
            assert all(sequence > floor.sequence for sequence in needed)


def test_all_that_was_delivered_and_is_done_is_under_the_floor() -> None:
    floor = Floor()
    for number, sequence in enumerate((3, 7, 8), 1):
        floor.delivered(number, sequence)
    floor.done(7)
    assert floor.sequence == 2
    floor.done(3)
    assert floor.sequence == 7
    floor.done(8)
    assert floor.sequence == 8


def test_a_gap_in_the_numbers_is_never_made_good() -> None:
    floor = Floor()
    floor.delivered(1, 3)
    floor.delivered(3, 9)
    assert not floor.whole
    floor.delivered(4, 5)
    assert not floor.whole


def test_deliveries_go_on_when_their_numbers_follow_the_last_one() -> None:
    """One that was made anew begins at 1, so what goes on is of the same consumer."""
    floor = Floor()
    assert floor.goes_on([1, 2]) and not floor.goes_on([2])
    floor.delivered(1, 3)
    assert floor.goes_on([2, 3, 4]) and not floor.goes_on([1]) and not floor.goes_on([2, 4])
    floor.delivered(3, 9)
    assert not floor.goes_on([4])

"""Snapshots: a packed run is the folded one, and nothing else is taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.engine.definitions import ALL
from tests.unit.engine.history import History, canonical
from tests.unit.engine.plays import Draw, play, plays
from tests.unit.engine.test_properties import lightly

from waybook.engine.fold import fold_all
from waybook.engine.run import Run
from waybook.engine.snapshot import pack, state_of, unpack
from waybook.events.subjects import RunKey

CODE = "this code"


def packed(run: Run) -> bytes:
    return pack(state_of(run), run, CODE)


@pytest.mark.parametrize("agent", list(ALL))
@lightly
@given(moves=plays(), data=st.data())
def test_snapshot_and_rest_are_the_whole_history(agent: str, moves: list[Draw], data: st.DataObject) -> None:
    """A run kept after any commit, as it was decided and not only as it was folded, goes on to the same run."""
    history = History(ALL[agent])
    live: list[bytes] = []
    for draw in moves:
        before = len(history.stored)
        play(history, [draw])
        if len(history.stored) == before + 1:
            assert history.run is not None
            live.append(packed(history.run))
    if not live:
        return
    kept = unpack(data.draw(st.sampled_from(live)), history.key, CODE)
    assert kept is not None
    rest = history.stored[kept.version :]
    assert canonical(fold_all(kept, rest, key=history.key)) == canonical(history.refold(len(history.stored)))


def some_run() -> Run:
    return Run(
        key=RunKey("t", "a", "r1"), agent="a", definition="d", state="running", started_at=1, version=200,
        sequence=7, commit="c7",
    )  # fmt: skip


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_damaged_bytes_are_no_run(place: int, bit: int) -> None:
    """One flipped bit anywhere, and there is no snapshot."""
    data = bytearray(packed(some_run()))
    data[place % len(data)] ^= 1 << bit
    assert unpack(bytes(data), some_run().key, CODE) is None


def test_other_code_and_another_run_are_no_snapshot() -> None:
    """What other code folded, what is another run's, and what is empty is passed over."""
    data = packed(some_run())
    assert unpack(data, some_run().key, CODE) == some_run()
    assert unpack(data, some_run().key, "other code") is None
    assert unpack(data, RunKey("t", "a", "r2"), CODE) is None
    assert unpack(b"", some_run().key, CODE) is None

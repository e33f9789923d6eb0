"""How a long-running process of Waybook sets up its interpreter."""

import gc

YOUNG = 50_000


def settle_memory() -> None:
    """Lets the garbage collector look seldom: what is imported stays, and almost nothing here is cyclic.

    Events, runs and commits are trees that reference counting frees; looking for cycles among them took about an
    eighth of a walker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 50, 100)

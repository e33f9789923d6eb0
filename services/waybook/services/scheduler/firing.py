"""What becomes of a timer that fired. Pure. The scheduler looks at the clock, so that `decide` never has to (R3.3)."""

import msgspec

from waybook.engine.ports import TimerRef

EARLY_MS = 2_000
"""A fire that comes earlier than that by the scheduler's clock is armed again."""

LOOK_AGAIN_MS = 30_000
"""How far away it is then armed at most, so that a clock that was set right again is noticed soon."""


class HandOver(msgspec.Struct, frozen=True):
    """Tell the run."""


class ArmAgain(msgspec.Struct, frozen=True):
    """Too early: arm it again for `at`, in ms UTC by the server's clock."""

    at: int


def on_fire(timer: TimerRef, fired_at: int, now: int, look_again_ms: int = LOOK_AGAIN_MS) -> HandOver | ArmAgain:
    """`fired_at` is the server's clock, `now` the scheduler's.

    Where the server's clock is ahead, what is left to wait counts from the fire, or it would fire again at once.
    """
    left = timer.due - now
    if left <= EARLY_MS:
        return HandOver()
    return ArmAgain(max(timer.due, fired_at + left) if left <= look_again_ms else fired_at + look_again_ms)

"""A list of a length that is known when the step is written."""

from typing import Annotated, Any

import msgspec


class Exactly(msgspec.Struct, frozen=True):
    """Marks a list parameter: `results: Annotated[list[Result], Exactly(5)]` is filled when there are exactly five.

    `FixedList(Result, 5)` is the same in short; type checkers understand the long form only.
    """

    size: Any


def FixedList(event: Any, size: Any) -> Any:
    """The annotation of a parameter that takes exactly `size` events, in the order in which they were stored.

    The step runs at the `size`-th event, and never again once there is one more. `size` has to be a whole number above
    zero, known when the step is defined; a number that is known at run time only goes with a plain list and a
    precondition.
    """
    return Annotated[list[event], Exactly(size)]

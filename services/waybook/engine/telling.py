"""What a run has others learn, and what it still learns itself when it has ended. Pure.

A row of the table may `tell`: for each fact that it returns the commit holds a `RunTold`, which the relay hands over
under an id of its own, so that it arrives once. A run that has ended takes no orders any more, but a fact is never thrown
away: the events that its table lists as `facts` are stored all the same, and rows that only set fields apply to them.
Nothing begins with them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from waybook.engine.errors import RowFailed
from waybook.events import engine as e

if TYPE_CHECKING:
    from waybook.engine.definition import Row
    from waybook.engine.recorder import Recorder
    from waybook.engine.run import Run


class Telling(msgspec.Struct, frozen=True):
    """A fact for another run of the tenant: `body` are the fields of its agent's external event `event`.

    An `agent` that begins with `@` is a system aggregate, `event` a fact of it then.
    """

    agent: str
    run: str
    event: str
    body: Any
    schema: int = 1


Tells = Callable[["Run", Any, int], Sequence[Telling]]
"""What a row tells: from the run as it was before the row applied, the event, and the time of the commit (ms, UTC)."""


def tell(recorder: "Recorder", row: "Row", event: Any) -> None:
    """Records what the row has others learn. Raises RowFailed for whatever asking it raises."""
    if row.tells is None:
        return
    try:
        facts = [
            e.RunTold(
                agent=one.agent,
                run=one.run,
                event=one.event,
                body=msgspec.Raw(msgspec.json.encode(one.body)),
                schema=one.schema,
            )
            for one in row.tells(recorder.run, event, recorder.now)
        ]
    except Exception as error:
        raise RowFailed(row.name, error) from error
    for fact in facts:
        recorder.record(fact)

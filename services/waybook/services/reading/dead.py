"""What DEAD holds of a run."""

from waybook.engine.hold import DeadCommand
from waybook.engine.ports import Notes, Record
from waybook.events.headers import BURIAL, REASON, command_of
from waybook.events.subjects import RunKey


async def last_given_up(notes: Notes, key: RunKey) -> DeadCommand | None:
    """The newest command of the run that was given up undecided. Raises PortUnavailable.

    Rejected ones hold nobody up, and of convicted ones the run itself knows.
    """
    given_up = [record for record in await notes.buried(key) if record.headers.get(BURIAL) == "undelivered"]
    return _dead_command(given_up[-1]) if given_up else None


def _dead_command(record: Record) -> DeadCommand:
    return DeadCommand(
        command=command_of(record.headers) or "unnamed",
        verb=record.subject.rpartition(".")[2],
        reason=record.headers.get(REASON, ""),
        at=record.stored_at,
    )

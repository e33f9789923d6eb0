"""Looking at what a run holds of a person is recorded, for the auditor."""

from uuid import uuid4

from waybook.engine.ports import Clock, Notes
from waybook.events.audit import Accessed, encode_record
from waybook.events.subjects import RunKey


async def note_access(notes: Notes, clock: Clock, key: RunKey, *, actor: str, what: str) -> None:
    """Submits who looks at `what` of a run; stored when it returns. Raises PortError: then nothing may be shown."""
    record = Accessed(actor=actor, at=clock.now(), what=what, run=str(key))
    await notes.audit(key.tenant, f"accessed.{uuid4().hex}", encode_record(record))

"""Puts fields that are too large for a commit into the object bucket, and finds them again."""

import asyncio

import msgspec

from waybook.engine.ports import CommitTooLarge, Objects, Record
from waybook.events.large_fields import MARK, MOST_EVENT, join, references, split, too_large
from waybook.events.subjects import parse_state_subject

SIDE_BY_SIDE = 8


class LargeFields:
    """The large fields of one stream's commits, in `objects`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._slots = asyncio.Semaphore(SIDE_BY_SIDE)

    async def fitting(self, subject: str, payload: bytes) -> bytes:
        """See StateLog.fitting: returns when the fields are stored. Raises CommitTooLarge, PortError."""
        check_events(subject, payload)
        smaller, objects = split(payload, parse_state_subject(subject))
        async with asyncio.TaskGroup() as group:
            for name, value in objects.items():
                group.create_task(self._put(name, value))
        return smaller

    async def _put(self, name: str, value: bytes) -> None:
        async with self._slots:
            await self._objects.put(name, value)

    async def whole(self, record: Record) -> Record:
        """The record with its fields in their places. Raises LostField, PortUnavailable."""
        if MARK not in record.payload:
            return record
        found: dict[str, bytes] = {}
        for reference in references(record.payload):
            try:
                found[reference.name] = await self._objects.get(reference.name)
            except KeyError:
                continue  # `join` names it
        payload = join(record.payload, parse_state_subject(record.subject), found)
        return msgspec.structs.replace(record, payload=payload)


def check_events(subject: str, payload: bytes) -> None:
    """Raises CommitTooLarge, naming the field, for an event over 768 KiB."""
    found = too_large(payload)
    if found is not None:
        raise CommitTooLarge(
            f"event {found.event} of the commit on {subject} has more than {MOST_EVENT} bytes; its largest field is "
            f"{found.field!r} ({found.bytes} bytes); put that into a store of your own, or into the object bucket by an "
            "effect, and let the event name it"
        )

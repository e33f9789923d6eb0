"""Reads the object bucket over a nats-py connection, for services that only consume (format: NATS ADR-20).

nats-py's own object store makes a consumer for each object, for which a reader would need more permissions.
"""

import asyncio
import base64
import hashlib
from typing import TYPE_CHECKING

import msgspec

from waybook.events.errors import RetryableError
from waybook.events.large_fields import join, references
from waybook.events.subjects import parse_state_subject

if TYPE_CHECKING:
    from nats.aio.client import Client

BUCKET = "artifacts"
TRIES = 4
REQUEST_S = 5.0


class ObjectUnread(RetryableError):
    """The object bucket did not answer, or its answer is not whole yet; ask again. The message names what to check."""


class _Meta(msgspec.Struct, frozen=True):
    nuid: str
    digest: str = ""
    deleted: bool = False


async def fetch(client: "Client", name: str) -> bytes | None:
    """An object's bytes; None when there is none. Raises ObjectUnread."""
    for attempt in range(TRIES):
        found = await _message(client, {"last_by_subj": f"$O.{BUCKET}.M.{_encoded(name)}"})
        meta = msgspec.json.decode(found[1], type=_Meta) if found is not None else None
        if meta is not None and not meta.deleted:
            data = await _chunks(client, f"$O.{BUCKET}.C.{meta.nuid}")
            if meta.digest == "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode():
                return data
        elif attempt == TRIES - 1:
            return None
        await asyncio.sleep(0.05 * 2**attempt)  # a replica may lag behind
    raise ObjectUnread(f"object {name} in bucket {BUCKET}: its chunks do not match its digest")


async def whole(client: "Client", payload: bytes, subject: str) -> bytes:
    """A commit's bytes with its large fields in their places. Raises ObjectUnread, LostField."""
    found: dict[str, bytes] = {}
    for reference in references(payload):
        data = await fetch(client, reference.name)
        if data is not None:
            found[reference.name] = data
    return join(payload, parse_state_subject(subject), found)


async def _chunks(client: "Client", subject: str) -> bytes:
    parts: list[bytes] = []
    sequence = 1
    while (found := await _message(client, {"seq": sequence, "next_by_subj": subject})) is not None:
        parts.append(found[1])
        sequence = found[0] + 1
    return b"".join(parts)


async def _message(client: "Client", request: dict[str, str | int]) -> tuple[int, bytes] | None:
    """The sequence and the bytes of a message; None when there is none."""
    import nats.errors

    try:
        body = msgspec.json.encode(request)
        answer = await client.request(f"$JS.API.DIRECT.GET.OBJ_{BUCKET}", body, timeout=REQUEST_S)
    except (nats.errors.TimeoutError, nats.errors.NoRespondersError) as error:
        raise ObjectUnread(
            f"the bucket {BUCKET} does not answer: is it there, and may this user publish to "
            f"$JS.API.DIRECT.GET.OBJ_{BUCKET}? ({error})"
        ) from error
    headers = answer.headers or {}
    status = headers.get("Status")
    if status is None:
        return int(headers["Nats-Sequence"]), answer.data
    if status == "404":
        return None
    raise ObjectUnread(f"the bucket {BUCKET} answers {status} {headers.get('Description', '')}".rstrip())


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()

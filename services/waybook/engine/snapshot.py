"""Snapshots: a folded run as bytes and back, so that a long run need not be folded from its beginning. Pure."""

import hashlib
import zlib

import msgspec

from waybook.engine.aggregates.kept import restored
from waybook.engine.run import Run
from waybook.events.subjects import RunKey

EVERY = 200
"""A run is kept after every so many of its commits; a shorter history is read as fast without."""

_LEVEL = 1  # the fastest: histories are repetitive, and a load waits for the unpacking
_decoder = msgspec.json.Decoder(Run)


class Kept(msgspec.Struct, frozen=True):
    """What stands in front of a packed run: by which code it was folded, where it stands, and a digest of the rest."""

    code: str
    version: int
    sequence: int
    digest: str


def is_due(version: int) -> bool:
    """Whether a run that has just got this version is to be kept."""
    return version % EVERY == 0


def pack(state: bytes, run: Run, code: str) -> bytes:
    """The bytes to keep. `state` is the run as `state_of` it, `code` names the code that folds."""
    body = zlib.compress(state, _LEVEL)
    head = Kept(code, run.version, run.sequence, _digest(body))
    return msgspec.json.encode(head) + b"\n" + body


def state_of(run: Run) -> bytes:
    """The run as JSON."""
    return msgspec.json.encode(run)


def unpack(data: bytes, key: RunKey, code: str) -> Run | None:
    """The run that was packed; None when it was folded by other code, is not `key`'s, or the bytes are damaged."""
    line, _, body = data.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=Kept)
        if head.code != code or head.digest != _digest(body):
            return None
        run = _decoder.decode(zlib.decompress(body))
        if key.agent.startswith("@"):
            run.fields = restored(run.fields)
    except (msgspec.DecodeError, zlib.error):
        return None
    fits = run.key == key and (run.version, run.sequence) == (head.version, head.sequence)
    return run if fits and run.commit else None


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

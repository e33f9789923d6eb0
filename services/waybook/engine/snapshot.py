"""Snapshots: a folded run as bytes and back, so that a long run need not be folded from its beginning. Pure."""

import hashlib
import zlib
from copy import copy

import msgspec

from waybook.engine.aggregates.kept import restored
from waybook.engine.run import Run
from waybook.events.subjects import RunKey

EVERY = 200
"""A run is kept after every so many of its commits; a shorter history is read as fast without."""

_LEVEL = 1  # the fastest: histories are repetitive, and a load waits for the unpacking


class _State(msgspec.Struct, frozen=True):
    """A run whose `visible` events are named by their places in its log: they are the same objects."""

    run: Run
    visible: dict[str, list[int]]


_decoder = msgspec.json.Decoder(_State)


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
    bare = copy(run)
    bare.visible = {}
    visible = {name: [published.ordinal for published in events] for name, events in run.visible.items()}
    return msgspec.json.encode(_State(bare, visible))


def unpack(data: bytes, key: RunKey, code: str) -> Run | None:
    """The run that was packed; None when it was folded by other code, is not `key`'s, or the bytes are damaged."""
    line, _, body = data.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=Kept)
        if head.code != code or head.digest != _digest(body):
            return None
        state = _decoder.decode(zlib.decompress(body))
        run, log = state.run, state.run.log
        run.visible = {name: [log[place] for place in places] for name, places in state.visible.items()}
        if key.agent.startswith("@"):
            run.fields = restored(run.fields)
    except (msgspec.DecodeError, zlib.error):
        return None
    fits = run.key == key and (run.version, run.sequence) == (head.version, head.sequence)
    return run if fits and run.commit else None


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

"""Writing a file: whole or not at all, found again by its name and digest."""

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waybook.adapters.effects.content import content_of
from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure
from waybook.engine.intents import CALL_MS
from waybook.engine.ports import Objects, PortError
from waybook.events.errors import InvalidInput


class FileWrite:
    """Writes files below one folder. Parameters: `path` below it, and the content (`text`, `base64` or `artifact`).

    The effect is one rename: a file is there with all its bytes, flushed to disk, or it is not. A file of that name is
    replaced. `objects` is needed for content from the bucket.

    `find` is authoritative: who else writes there under the same names breaks that. Undoing removes the file, unless
    somebody changed it.
    """

    settle_ms = 0
    find_is_authoritative = True

    def __init__(self, folder: Path, objects: Objects | None = None, *, call_ms: int = CALL_MS) -> None:
        self.call_ms = call_ms
        self._folder = folder
        self._objects = objects

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        try:
            path, data = self._path(call), await content_of(call.params, self._objects)
        except InvalidInput as error:
            return NotDone(str(error), retryable=False)
        except PortError as error:
            return NotDone(str(error))
        return await asyncio.to_thread(_write, path, data, call.idempotency_key, deadline)

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        try:
            path, data = self._path(call), await content_of(call.params, self._objects)
        except InvalidInput as error:
            return Unsure(str(error), again=False)
        there = await asyncio.to_thread(_holds, path, data)
        if call.undoes is not None:
            return NotThere() if there else Done()
        return Done(_evidence(path, data)) if there else NotThere()

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        try:
            path, data = self._path(call), await content_of(call.params, self._objects)
        except InvalidInput as error:
            return NotDone(str(error), retryable=False)
        except PortError as error:
            return NotDone(str(error))
        return await asyncio.to_thread(_remove, path, data, deadline)

    def _path(self, call: EffectCall) -> Path:
        """Raises InvalidInput for a path that leads out of the folder."""
        given = call.params.get("path")
        if not isinstance(given, str) or not given or "\0" in given:
            raise InvalidInput("`path` has to name a file")
        folder = self._folder.resolve()
        path = (folder / given).resolve()
        if path == folder or not path.is_relative_to(folder):
            raise InvalidInput(f"{given!r} leads out of the folder")
        return path


def _write(path: Path, data: bytes, key: str, deadline: Deadline) -> Done | NotDone:
    draft = path.with_name(f".{path.name[:100]}.{key}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        deadline.check()
        os.replace(draft, path)
    except OSError as error:
        return NotDone(f"{path.name} cannot be written: {error}")
    finally:
        draft.unlink(missing_ok=True)
    _flush(path.parent)
    return Done(_evidence(path, data))


def _remove(path: Path, data: bytes, deadline: Deadline) -> Done | NotDone:
    if not path.exists():
        return Done()
    if not _holds(path, data):
        return NotDone(f"{path.name} is not what was written", retryable=False)
    deadline.check()
    try:
        path.unlink()
    except OSError as error:
        return NotDone(f"{path.name} cannot be removed: {error}")
    _flush(path.parent)
    return Done()


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except FileNotFoundError:
        return False


def _flush(folder: Path) -> None:
    """Makes names durable: a rename that a power cut undoes would be found absent afterwards."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _evidence(path: Path, data: bytes) -> dict[str, Any]:
    return {"file": path.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

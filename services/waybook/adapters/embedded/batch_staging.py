"""Keeps the staging files of atomic batches in memory, for an embedded nats-server.

A server with one replica stages every batch (ADR-50) in a small file store of its own: three folders, two files
written with O_SYNC, three fsyncs, all deleted a moment later. What is staged there is acknowledged to nobody; the
batch's messages are written and synced in the stream itself before the answer. On a file system in memory the
same batch costs the disk one fsync. Where the server stages is known from its file layout, not from a setting: a
server that does it otherwise takes no notice, and works as it would without this module.
"""

import logging
import shutil
import tempfile
from pathlib import Path

_log = logging.getLogger(__name__)

MEMORY = Path("/dev/shm")
STAGING = "batches"
PREFIX = "waybook-batches-"


def stage_in_memory(store: Path, streams: tuple[str, ...]) -> int:
    """Points the staging folders of these streams to memory; returns how many now are there.

    `store` is the server's folder. A stream whose folder holds a batch just now, or that is not there yet, is left
    alone, as is everything where there is no file system in memory. Call it when the streams have been made.
    """
    if not MEMORY.is_dir():
        return 0
    return sum(_point(folder / STAGING) for name in streams for folder in store.glob(f"jetstream/*/streams/{name}"))


def _point(staging: Path) -> int:
    try:
        if staging.is_symlink():
            return 1
        if staging.exists():
            staging.rmdir()
        target = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY))
        staging.symlink_to(target)
    except OSError as error:
        _log.info("batches are staged on disk", extra={"action": "batches_on_disk", "error": str(error)})
        return 0
    return 1


def forget(store: Path) -> None:
    """Before a server starts and after it stopped: what an earlier one staged is worth nothing."""
    for staging in store.glob(f"jetstream/*/streams/*/{STAGING}"):
        if staging.is_symlink():
            target = staging.readlink()
            staging.unlink()
            if target.parent == MEMORY and target.name.startswith(PREFIX):
                shutil.rmtree(target, ignore_errors=True)

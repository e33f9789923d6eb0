"""What the embedded servers have in common: one server a folder, found again when its owner was killed."""

import asyncio
import logging
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from waybook.adapters.embedded.errors import ServerStartFailed
from waybook.adapters.embedded.file_lock import FileLock
from waybook.adapters.embedded.processes import Process, ProcessId, command_line, identify

_log = logging.getLogger(__name__)
_TAIL_LINES = 8
_LARGE_LOG = 8 * 1024 * 1024


class Record(msgspec.Struct, frozen=True):
    """A running server as the next owner of its folder finds it.

    `fingerprint` stands for everything that must be equal for it to be used as it is; `addresses` are the server's own.
    """

    process: ProcessId
    fingerprint: str
    addresses: dict[str, str]


class EmbeddedServer(ABC):
    """A server with a folder of its own, started, stopped, killed and started again by the program itself.

    The server inherits a lock on its folder and holds it as long as it lives. So two servers never work on one folder,
    and after its owner was killed it is found: a new owner takes it over when it answers and was started the same way,
    else stops it and starts anew. Bound to no event loop. `wanted` is whether it was asked to run last. `stop_steps` are
    the signals of an orderly end, each with the seconds to wait for it. `_complaints` mark the lines of its log that
    say why it failed.
    """

    name: ClassVar[str]
    _complaints: ClassVar[tuple[str, ...]]

    def __init__(self, folder: Path, stop_steps: Sequence[tuple[int, float]], *, start_timeout_s: float) -> None:
        self.folder = folder
        self.log = folder / f"{self.name}.log"
        self.process: Process | None = None
        self.wanted = False
        self._stop_steps = stop_steps
        self._start_timeout_s = start_timeout_s
        self._lock = FileLock(folder / "lock")
        self._record_file = folder / "server.json"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def adopted(self) -> bool:
        """Whether it was found running."""
        return self.process is not None and self.process.adopted

    async def start(self) -> None:
        """Returns when it answers; after an earlier start of this object, under the same address.

        Raises ServerStartFailed, AddressTaken, ProgramMissing, ServerTooOld, DataDirectoryUnusable.
        """
        self.wanted = True
        if self.alive:
            return
        try:
            self._prepare_folder()
            if not await self._taken_over():
                await self._start_anew()
        except OSError as error:  # a full disk, most of all
            raise ServerStartFailed(f"{self.name} did not start: {error}") from error

    async def _start_anew(self) -> None:
        """The lock is held here, and is the server's alone afterwards."""
        try:
            self._shorten_log()
            await self._launch()
            self._write_record()
        except BaseException:  # also when cancelled: nothing half started may stay
            if self.process is not None:
                await self.process.stop(*self._stop_steps)
            raise
        finally:
            self._lock.release()
        self._say("server_started", "started")

    async def stop(self) -> None:
        """An orderly shutdown; SIGKILL when it takes too long."""
        self.wanted = False
        if self.process is not None:
            await self.process.stop(*self._stop_steps)
            self._say("server_stopped", "stopped")

    async def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        self.wanted = False
        if self.process is not None:
            await self.process.stop()
            self._say("server_killed", "killed")

    async def restart(self) -> None:
        """Starts it again under the same address, after a stop or a kill, or stops it first."""
        await self.stop()
        await self.start()

    async def end_left_behind(self) -> None:
        """Stops a server that an earlier owner left running in the folder; nothing happens when there is none."""
        if not self.folder.exists():
            return
        if not self._lock.acquire():
            await self._end_holder()
        self._lock.release()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        if self.process is not None:
            self.process.send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        if self.process is not None:
            self.process.send(signal.SIGCONT)

    async def _taken_over(self) -> bool:
        """True: a running server is used. False: there is none, and the lock is held here."""
        if self._lock.acquire():
            return False
        record = self._read_record()
        if record and record.fingerprint == self._fingerprint() and record.process.alive and await self._adopts(record):
            self.process = Process(record.process)
            self._say("server_taken_over", "taken over")
            return True
        await self._end_holder()
        return False

    async def _end_holder(self) -> None:
        end = time.monotonic() + self._start_timeout_s
        while not self._lock.acquire():
            if holder := self._holder():
                _log.info(
                    "stopping the %s that an earlier owner left behind (pid %d)",
                    self.name,
                    holder.pid,
                    extra={"action": "server_left_behind", "server": self.name, "pid": holder.pid},
                )
                await holder.stop(*self._stop_steps)
            elif time.monotonic() >= end:
                raise ServerStartFailed(
                    f"a process still holds {self._lock.path}, and it is not the {self.name} on record; "
                    f"find it with `fuser {self._lock.path}` and stop it"
                )
            await asyncio.sleep(0.02)

    def _holder(self) -> Process | None:
        """The server that works on this folder, by its own pid file; never a process that only has its old pid."""
        pid = self._pid_on_file()
        identity = identify(pid) if pid else None
        if identity and f"{self.folder}/" in command_line(identity.pid):
            return Process(identity)
        return None

    def _read_record(self) -> Record | None:
        try:
            return msgspec.json.decode(self._record_file.read_bytes(), type=Record)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _write_record(self) -> None:
        if self.process is not None:
            record = Record(self.process.identity, self._fingerprint(), self._addresses())
            half = self._record_file.with_suffix(".new")
            half.write_bytes(msgspec.json.encode(record))
            half.replace(self._record_file)

    def _shorten_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > _LARGE_LOG:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _failed(self, why: str, since: int) -> ServerStartFailed:
        """The error of a start, with what the log says from byte `since` on: its complaints, else its end."""
        lines = self._log_since(since).strip().splitlines()
        complaints = [line for line in lines if any(mark in line for mark in self._complaints)]
        said = "".join(f"\n    {line}" for line in (complaints or lines)[-_TAIL_LINES:]) or " nothing"
        return ServerStartFailed(f"{self.name} did not start: {why}. Its log, {self.log}, says:{said}")

    def _log_since(self, since: int) -> str:
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read(_LARGE_LOG).decode(errors="replace")

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _say(self, action: str, what: str) -> None:
        pid = self.process.pid if self.process else 0
        _log.info("%s %s (pid %d)", self.name, what, pid, extra={"action": action, "server": self.name, "pid": pid})

    @abstractmethod
    def _prepare_folder(self) -> None:
        """Makes the folder, with the right owner and mode."""

    @abstractmethod
    async def _launch(self) -> None:
        """Starts the process, which inherits the lock, and waits until it answers."""

    @abstractmethod
    async def _adopts(self, record: Record) -> bool:
        """Whether the server on record answers; its addresses are then the own."""

    @abstractmethod
    def _fingerprint(self) -> str: ...

    @abstractmethod
    def _addresses(self) -> dict[str, str]: ...

    @abstractmethod
    def _pid_on_file(self) -> int | None:
        """What the server's own pid file says."""

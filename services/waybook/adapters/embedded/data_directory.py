"""The folder that holds what the embedded servers store, and whose it is at the moment."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from waybook.adapters.embedded.errors import DataDirectoryInUse, DataDirectoryUnusable
from waybook.adapters.embedded.file_lock import FileLock
from waybook.adapters.embedded.processes import ProcessId, identify

_log = logging.getLogger(__name__)
ROOT_DEFAULT = Path("/var/lib/waybook")
_PATIENCE_S = 15.0
_POLL_S = 0.02


class Addresses(msgspec.Struct, frozen=True):
    """Where the servers are. None: unknown (monitoring), or not asked for (database)."""

    nats_url: str
    nats_monitor_url: str | None = None
    database_url: str | None = None


class Owner(msgspec.Struct, frozen=True):
    """Who has the data directory, as it stands in `owner.json`.

    `role` is the command ("up", "run", "serve walker"). `reading`: a reading command that started the servers for its
    own duration. `addresses` is None while the servers start, and again while they stop.
    """

    process: ProcessId
    role: str
    reading: bool = False
    addresses: Addresses | None = None


class DataDirectory:
    """One folder, one owner. Its owner alone starts servers in it; others use the owner's addresses.

    The owner holds a lock that ends with its process, so a directory whose owner was killed is free at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner_file = path / "owner.json"

    @classmethod
    def resolve(cls, given: str | Path | None = None, environ: Mapping[str, str] = os.environ) -> "DataDirectory":
        """The directory to use: `given` (`--data-dir`), else WAYBOOK_DATA_DIR, else the default.

        The default is $XDG_STATE_HOME/waybook or ~/.local/state/waybook; for root it is /var/lib/waybook, because
        PostgreSQL then runs under another user, who cannot enter root's home. Nothing is made yet.
        """
        chosen = given or environ.get("WAYBOOK_DATA_DIR")
        if not chosen and os.geteuid() == 0:
            return cls(ROOT_DEFAULT)
        try:
            path = Path(chosen) if chosen else _state_home(environ) / "waybook"
            return cls(path.expanduser().absolute())
        except RuntimeError as error:
            raise DataDirectoryUnusable(
                "there is no home directory to keep data in; name a folder with --data-dir or WAYBOOK_DATA_DIR"
            ) from error

    @property
    def nats_folder(self) -> Path:
        return self.path / "nats"

    @property
    def postgres_folder(self) -> Path:
        return self.path / "postgres"

    def owner(self) -> Owner | None:
        """The living owner, or None. It may be gone in the next moment."""
        try:
            owner = msgspec.json.decode(self._owner_file.read_bytes(), type=Owner)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise DataDirectoryUnusable(f"{self._owner_file} cannot be read: {error.strerror}") from error
        return owner if owner.process.alive else None

    async def own(self, role: str, *, reading: bool = False) -> "Ownership":
        """Becomes the owner, for `role`, until `Ownership.release` or the end of the process.

        Waits up to 15 s for a reading command that has the directory for a moment. Raises DataDirectoryInUse when
        another process keeps it, DataDirectoryUnusable.
        """
        self._make()
        lock = FileLock(self.path / "owner.lock")
        end = time.monotonic() + _PATIENCE_S
        unnamed_end = time.monotonic() + 1.0
        while not lock.acquire():
            owner = self.owner()
            # An owner without a name has just taken the lock, or lives where its pid means nothing to us.
            if time.monotonic() >= (unnamed_end if owner is None else end if owner.reading else 0.0):
                raise self._in_use(owner)
            await asyncio.sleep(_POLL_S)
        ownership = Ownership(self, lock, role, reading)
        ownership.publish(None)
        return ownership

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[Addresses | None]:
        """The living owner's addresses, for a reading command; None when there is no owner.

        Waits for an owner that is starting. An owner that is itself a reading command keeps its servers up until the
        block ends. Raises DataDirectoryInUse when an owner does not get ready within 15 s.
        """
        if not self._owner_file.exists():
            yield None
            return
        use = FileLock(self.path / "use.lock")
        try:
            yield await self._borrow(use)
        finally:
            use.release()

    async def _borrow(self, use: FileLock) -> Addresses | None:
        end = time.monotonic() + _PATIENCE_S
        while True:
            shared = use.held or use.acquire(shared=True)
            owner = self.owner()
            if owner is None:
                use.release()
                return None
            if shared and owner.addresses is not None:
                return owner.addresses
            if time.monotonic() >= end:
                raise DataDirectoryInUse(
                    f"{self.path} belongs to `waybook {owner.role}` (pid {owner.process.pid}), whose servers are not "
                    "ready; look at its output, or try again"
                )
            if owner.addresses is None:
                use.release()  # it may be stopping, and waits for us
            await asyncio.sleep(_POLL_S)

    def write_owner(self, owner: Owner | None) -> None:
        """Replaces `owner.json`, or removes it. The owner's own business."""
        try:
            if owner is None:
                self._owner_file.unlink(missing_ok=True)
                return
            half = self._owner_file.with_suffix(".new")
            half.write_bytes(msgspec.json.format(msgspec.json.encode(owner)))
            half.replace(self._owner_file)
        except OSError as error:
            raise DataDirectoryUnusable(f"{self._owner_file} cannot be written: {error.strerror}") from error

    def _in_use(self, owner: Owner | None) -> DataDirectoryInUse:
        if owner is None:
            return DataDirectoryInUse(
                f"{self.path} is in use by a process that cannot be seen from here, perhaps in another container; "
                "stop it, or choose another folder with --data-dir or WAYBOOK_DATA_DIR"
            )
        return DataDirectoryInUse(
            f"{self.path} is in use by `waybook {owner.role}` (pid {owner.process.pid}); stop that process "
            f"(`kill {owner.process.pid}`), or choose another folder with --data-dir or WAYBOOK_DATA_DIR"
        )

    def _make(self) -> None:
        """Only the owner reads what is in it; as root, PostgreSQL's user must be able to pass through."""
        try:
            for folder in reversed(self.path.parents):
                if not folder.exists():
                    folder.mkdir()
                    folder.chmod(0o755)
            if not self.path.exists():
                self.path.mkdir(mode=0o700)
                self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise self._unusable(error) from error
        if not self.path.is_dir() or not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise self._unusable(None)

    def _unusable(self, error: OSError | None) -> DataDirectoryUnusable:
        why = f"cannot be made: {error.strerror}" if error else "is no folder that you may write to"
        return DataDirectoryUnusable(
            f"the data directory {self.path} {why}; choose another one with --data-dir or WAYBOOK_DATA_DIR"
        )


class Ownership:
    """The data directory is ours: its addresses are published here, and it is given back here."""

    def __init__(self, directory: DataDirectory, lock: FileLock, role: str, reading: bool) -> None:
        self.directory = directory
        self._lock = lock
        process = identify(os.getpid()) or ProcessId(os.getpid(), "")
        self._owner = Owner(process, role, reading)

    def publish(self, addresses: Addresses | None) -> None:
        """Lets other commands find the servers; None: they are not up."""
        self.directory.write_owner(msgspec.structs.replace(self._owner, addresses=addresses))

    async def withdraw(self, *, timeout_s: float = 10.0) -> None:
        """Before the servers stop: sends nobody to them any more.

        When this is a reading command, it waits for others that use its servers, up to `timeout_s` seconds.
        """
        self.publish(None)
        if not self._owner.reading:
            return
        use = FileLock(self.directory.path / "use.lock")
        end = time.monotonic() + timeout_s
        while not use.acquire():
            if time.monotonic() >= end:
                _log.warning("stopping servers that are in use", extra={"action": "servers_stopped_in_use"})
                return
            await asyncio.sleep(_POLL_S)
        use.release()

    def release(self) -> None:
        """Gives the directory back."""
        if self._lock.held:
            self.directory.write_owner(None)
            self._lock.release()


def _state_home(environ: Mapping[str, str]) -> Path:
    named = environ.get("XDG_STATE_HOME", "")
    return Path(named) if named.startswith("/") else Path.home() / ".local" / "state"

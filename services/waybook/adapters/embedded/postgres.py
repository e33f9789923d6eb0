"""A PostgreSQL of the program's own, on a Unix socket."""

import asyncio
import hashlib
import os
import shutil
import signal
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from waybook.adapters.embedded import programs
from waybook.adapters.embedded.errors import DataDirectoryUnusable, ServerStartFailed
from waybook.adapters.embedded.processes import Process, identify
from waybook.adapters.embedded.server import EmbeddedServer, Record
from waybook.adapters.embedded.unprivileged import User, can_enter, check_reachable, server_user

_ROLE = "waybook"
_DATABASE = "postgres"
_PORT = 5432
_LONGEST_SOCKET = 103  # bytes; the shortest limit of the systems that PostgreSQL runs on
_FAST, _IMMEDIATE = signal.SIGINT, signal.SIGQUIT


class Postgres(EmbeddedServer):
    """PostgreSQL 18 with its data in `folder`, reachable by this user (and root) through a Unix socket alone.

    As root it runs under another user (`server_user`), who must be able to enter `folder`; where that user cannot
    reach the installed programs, as in a virtual environment under /root, a copy of them (20 MB) is kept in `folder`.
    The role `waybook` is superuser and needs no password: whoever reaches the socket is trusted. `durable=False` never
    waits for the disk: enough for tests, a crash of the machine ruins the data.
    """

    name: ClassVar[str] = "postgres"
    _complaints: ClassVar[tuple[str, ...]] = ()  # it says little at its start, and the reason in lines of all levels

    def __init__(
        self, folder: Path, *, durable: bool = True, start_timeout_s: float = 60.0, stop_timeout_s: float = 20.0
    ) -> None:
        super().__init__(folder, [(_FAST, stop_timeout_s), (_IMMEDIATE, 5.0)], start_timeout_s=start_timeout_s)
        self._data = folder / "data"
        self._durable = durable
        self._user: User | None = None

    @property
    def url(self) -> str:
        """The address for asyncpg; known before the first start."""
        return f"postgresql://{_ROLE}@/{_DATABASE}?host={quote(str(self._socket_folder), safe='/')}"

    @property
    def is_made(self) -> bool:
        """Whether a cluster was ever made in the folder."""
        return (self._data / "PG_VERSION").exists()

    @property
    def _socket_folder(self) -> Path:
        """In `folder`, or in /tmp where the path of the socket would be too long."""
        if len(os.fsencode(_socket(self.folder))) <= _LONGEST_SOCKET:
            return self.folder
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path("/tmp") / f"waybook-{digest}"

    def _prepare_folder(self) -> None:
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._user = server_user(self.folder)
            self._make_own(self.folder)
            if self._socket_folder != self.folder:
                self._socket_folder.mkdir(mode=0o700, exist_ok=True)
                self._make_own(self._socket_folder)
        except OSError as error:
            raise DataDirectoryUnusable(f"{self.folder} cannot be used for PostgreSQL: {error.strerror}") from error
        if self._user:
            check_reachable(self._user, self.folder)

    def _make_own(self, folder: Path) -> None:
        """The folder belongs to the server's user alone. Raises DataDirectoryUnusable when it is another's."""
        found = folder.lstat()
        mine = self._user.uid if self._user else os.geteuid()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (mine, os.geteuid()):
            raise DataDirectoryUnusable(
                f"{folder} is no folder of user {mine}; remove it, or choose another --data-dir"
            )
        if self._user:
            os.chown(folder, self._user.uid, self._user.gid)
        folder.chmod(0o700)

    async def _launch(self) -> None:
        bin_folder = self._programs()
        if not (self._data / "PG_VERSION").exists():
            await self._initialise(bin_folder)
        made_by = (self._data / "PG_VERSION").read_text().strip()
        if made_by != str(programs.POSTGRES_MAJOR):
            raise ServerStartFailed(
                f"{self._data} was made by PostgreSQL {made_by}, this is {programs.POSTGRES_MAJOR}; "
                "it holds read models only: move it away and they are built anew from the log"
            )
        self._forget_crashed()
        since = self._log_size()
        self.process = self._start_program([bin_folder / "postgres", *self._arguments()])
        await self._until_ready(self.process, since)

    def _arguments(self) -> list[str | Path]:
        place: list[str | Path] = ["-D", self._data, "-k", self._socket_folder, "-p", str(_PORT)]
        settings = ["listen_addresses=", "unix_socket_permissions=0700", "log_line_prefix=%m [%p] "]
        if not self._durable:
            settings += ["fsync=off", "full_page_writes=off", "synchronous_commit=off"]
        return [*place, *(part for setting in settings for part in ("-c", setting))]

    def _forget_crashed(self) -> None:
        """Removes the pid files of a crashed server: the lock says that none works here, but PostgreSQL would refuse
        to start when the pid in them belongs to some other process by now."""
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        Path(f"{_socket(self._socket_folder)}.lock").unlink(missing_ok=True)

    async def _initialise(self, bin_folder: Path) -> None:
        """Makes the data folder, whole or not at all."""
        half = self.folder / "half"
        shutil.rmtree(half, ignore_errors=True)
        since = self._log_size()
        options = ["-U", _ROLE, "--auth=trust", "--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", *([] if self._durable else ["--no-sync"])]
        making = self._start_program([bin_folder / "initdb", "-D", half, *options])
        try:
            if not await making.wait(self._start_timeout_s):
                raise self._failed(f"initdb did not end within {self._start_timeout_s:g} s", since)
        finally:
            await making.stop()
        if making.exit_code != 0:
            raise self._failed(f"initdb ended with code {making.exit_code}", since)
        half.rename(self._data)

    def _start_program(self, arguments: Sequence[str | Path]) -> Process:
        try:
            return Process.start(
                arguments,
                output=self.log,
                directory=self.folder,
                user=(self._user.uid, self._user.gid) if self._user else None,
                keep_open=[self._lock.descriptor],
                environment={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
            )
        except OSError as error:
            raise ServerStartFailed(f"{arguments[0]} cannot be run: {error.strerror}") from error

    def _programs(self) -> Path:
        bin_folder = programs.postgres_bin()
        if self._user and not can_enter(self._user, bin_folder / "postgres"):
            return programs.copy_postgres(bin_folder, self.folder / "programs")
        return bin_folder

    async def _until_ready(self, process: Process, since: int) -> None:
        end = time.monotonic() + self._start_timeout_s
        while self._status() != (process.pid, "ready"):
            if not process.alive:
                raise self._failed(f"it ended with code {process.exit_code}", since)
            if time.monotonic() >= end:
                raise self._failed(f"it was not ready after {self._start_timeout_s:g} s", since)
            await asyncio.sleep(0.005)

    def _status(self) -> tuple[int, str] | None:
        """Pid and status ("starting", "ready", "stopping") by the server's own file; None where there is none."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), lines[7].strip()
        except (FileNotFoundError, IndexError, ValueError):
            return None

    async def _adopts(self, record: Record) -> bool:
        if self._status() != (record.process.pid, "ready") or record.addresses.get("url") != self.url:
            return False
        try:
            _, writer = await asyncio.wait_for(asyncio.open_unix_connection(_socket(self._socket_folder)), 2.0)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    def _fingerprint(self) -> str:
        return f"{programs.POSTGRES_MAJOR} {self._socket_folder} {self._durable}"

    def _addresses(self) -> dict[str, str]:
        return {"url": self.url}

    def _pid_on_file(self) -> int | None:
        try:
            pid = int((self._data / "postmaster.pid").read_text().partition("\n")[0])
        except (FileNotFoundError, ValueError):
            return None
        return pid if identify(pid) else None


def _socket(folder: Path) -> Path:
    return folder / f".s.PGSQL.{_PORT}"

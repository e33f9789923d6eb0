"""The real nats-server with JetStream, on loopback, started by the program itself."""

import asyncio
import signal
import time
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import msgspec

from waybook.adapters.embedded import batch_staging, programs
from waybook.adapters.embedded.errors import AddressTaken, DataDirectoryUnusable, ServerStartFailed, ServerUnreachable
from waybook.adapters.embedded.free_port import free_port, is_free
from waybook.adapters.embedded.monitoring import read_monitor
from waybook.adapters.embedded.processes import Process
from waybook.adapters.embedded.server import EmbeddedServer, Record
from waybook.adapters.embedded.server_version import check_server_version

_TAKEN = "address already in use"
_TRIES = 5


class _Ports(msgspec.Struct):
    nats: list[str]
    monitoring: list[str]


class NatsServer(EmbeddedServer):
    """A nats-server on 127.0.0.1 that keeps its streams in `folder`.

    `sync_always` is what makes an acknowledged message safe from a crash of the machine; False takes the server's
    default (a sync every 2 minutes) and is for measurements only. `max_store_bytes` limits what all streams may take
    on disk, by default three quarters of what is free. `port` and `monitor_port` are chosen when None, the ones of
    the folder's last server if they are free. The largest message is the server's own default, 1 MiB, so that what
    works here works on a server that nobody tuned. `start_timeout_s` is long because a large store is read at start;
    after `stop_timeout_s` an orderly end is given up and it is killed.
    """

    name: ClassVar[str] = "nats-server"
    _complaints: ClassVar[tuple[str, ...]] = ("[FTL]", "[ERR]", "nats-server: ")

    def __init__(
        self,
        folder: Path,
        *,
        sync_always: bool = True,
        max_store_bytes: int | None = None,
        port: int | None = None,
        monitor_port: int | None = None,
        start_timeout_s: float = 60.0,
        stop_timeout_s: float = 15.0,
    ) -> None:
        super().__init__(folder, [(signal.SIGTERM, stop_timeout_s)], start_timeout_s=start_timeout_s)
        self._sync_always = sync_always
        self._max_store_bytes = max_store_bytes
        self._fixed = (port, monitor_port)
        self._config = folder / "nats.conf"
        self._pid_file = folder / "nats.pid"
        self._ports_folder = folder / "ports"
        self._url = ""
        self._monitor_url = ""
        self.version = ""

    @property
    def url(self) -> str:
        """nats://127.0.0.1:PORT; the same over every restart of this object. Empty before the first start."""
        return self._url

    @property
    def monitor_url(self) -> str:
        """http://127.0.0.1:PORT. Empty before the first start."""
        return self._monitor_url

    def _prepare_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._ports_folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataDirectoryUnusable(f"{self.folder} cannot be used for nats-server: {error.strerror}") from error

    def stage_batches_in_memory(self, streams: tuple[str, ...]) -> None:
        """Spares the disk the scratch files of atomic batches, until the next start (`batch_staging`)."""
        batch_staging.stage_in_memory(self.folder, streams)

    async def stop(self) -> None:
        """An orderly shutdown; SIGKILL when it takes too long."""
        await super().stop()
        if not self.alive:
            batch_staging.forget(self.folder)

    async def _launch(self) -> None:
        batch_staging.forget(self.folder)
        for attempt in range(_TRIES):
            ports = self._choose_ports(first=attempt == 0)
            try:
                await self._launch_on(*ports)
                break
            except AddressTaken:
                if self._url or all(self._fixed) or attempt == _TRIES - 1:
                    raise
        varz = await read_monitor(self._monitor_url, "varz", timeout_s=10.0)
        self.version = str(varz.get("version", ""))
        try:
            check_server_version(self.version, where=f"the nats-server {programs.nats_server()}")
        except Exception:
            await self.stop()
            raise

    def _choose_ports(self, *, first: bool) -> tuple[int, int]:
        """The ones asked for, else those of this object or of the folder's last server, else free ones."""
        known: tuple[int | None, int | None] = (_port(self._url), _port(self._monitor_url))
        if not self._url and first and (record := self._read_record()):
            last = (_port(record.addresses.get("url", "")), _port(record.addresses.get("monitor_url", "")))
            known = last if all(port and is_free(port) for port in last) else known
        return (self._fixed[0] or known[0] or free_port(), self._fixed[1] or known[1] or free_port())

    async def _launch_on(self, port: int, monitor_port: int) -> None:
        program = programs.nats_server()
        self._config.write_bytes(self._render(port, monitor_port))
        for old in self._ports_folder.iterdir():
            old.unlink()
        since = self._log_size()
        try:
            self.process = Process.start(
                [program, "-c", self._config],
                output=self.log,
                directory=self.folder,
                keep_open=[self._lock.descriptor],
            )
        except OSError as error:
            raise ServerStartFailed(f"{program} cannot be run: {error.strerror}") from error
        await self._until_ready(self.process, since)

    async def _until_ready(self, process: Process, since: int) -> None:
        end = time.monotonic() + self._start_timeout_s
        ports_file = self._ports_folder / f"{programs.nats_server().name}_{process.pid}.ports"
        while not (ports := _read_ports(ports_file)):
            if not process.alive:
                error = self._failed(f"it ended with code {process.exit_code}", since)
                raise AddressTaken(str(error)) if _TAKEN in self._log_since(since) else error
            if time.monotonic() >= end:
                await process.stop()
                raise self._failed(f"it was not ready after {self._start_timeout_s:g} s", since)
            await asyncio.sleep(0.005)
        self._url, self._monitor_url = ports.nats[0], ports.monitoring[0]

    def _render(self, port: int, monitor_port: int) -> bytes:
        """JSON is a valid server configuration, and the only notation with rules for every path."""
        jetstream: dict[str, object] = {"store_dir": str(self.folder)}
        if self._sync_always:
            jetstream["sync_interval"] = "always"
        if self._max_store_bytes is not None:
            jetstream["max_file_store"] = self._max_store_bytes
        config = {
            "server_name": "waybook",
            "host": "127.0.0.1",
            "port": port,
            "http": f"127.0.0.1:{monitor_port}",
            "pid_file": str(self._pid_file),
            "ports_file_dir": str(self._ports_folder),
            "jetstream": jetstream,
        }
        return msgspec.json.format(msgspec.json.encode(config))

    async def _adopts(self, record: Record) -> bool:
        url, monitor_url = record.addresses.get("url", ""), record.addresses.get("monitor_url", "")
        if self._url and self._url != url:
            return False
        wanted = zip(self._fixed, (_port(url), _port(monitor_url)), strict=True)
        if any(fixed is not None and fixed != port for fixed, port in wanted):
            return False
        try:
            health = await read_monitor(monitor_url, "healthz")
            varz = await read_monitor(monitor_url, "varz")
        except ServerUnreachable:
            return False
        if health.get("status") != "ok" or varz.get("port") != _port(url):
            return False
        self._url, self._monitor_url, self.version = url, monitor_url, str(varz.get("version", ""))
        return True

    def _fingerprint(self) -> str:
        program = programs.nats_server()
        stamp = program.stat()
        return f"{program} {stamp.st_size} {stamp.st_mtime_ns} {self._render(0, 0).decode()}"

    def _addresses(self) -> dict[str, str]:
        return {"url": self._url, "monitor_url": self._monitor_url}

    def _pid_on_file(self) -> int | None:
        try:
            return int(self._pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None


def _port(url: str) -> int | None:
    return urlsplit(url).port if url else None


def _read_ports(path: Path) -> _Ports | None:
    """None while the file is not there or half written."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Ports)
    except (FileNotFoundError, msgspec.DecodeError):
        return None

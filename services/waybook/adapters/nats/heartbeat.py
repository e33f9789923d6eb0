"""Keeping leases alive from a thread of its own, whatever the main loop is busy with."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.frames import publish_frame
from waybook.adapters.nats.settings import NatsSettings
from waybook.engine.ports import PortError, PortMisconfigured, PortUnavailable

log = logging.getLogger(__name__)


class _Lease:
    """A delivery that is held. `since` is the boot time of `hold`, `until` that at which it is renewed no longer."""

    __slots__ = ("since", "until")

    def __init__(self, since: float, until: float) -> None:
        self.since = since
        self.until = until


class NatsHeartbeat:
    """The port Heartbeat: every quarter of `ack_wait_s` it renews all leases that are held.

    It has a thread, a loop and a connection of its own, so neither user code on the main loop nor a step that
    holds it up stops the renewals. A pause of the process (a suspended machine, SIGSTOP) or of the server longer
    than ack_wait ends all leases: `on_lost` is called once, **in the heartbeat's thread**, and nothing is held
    any more.
    """

    def __init__(self, settings: NatsSettings, ack_wait_s: float, on_lost: Callable[[], None]) -> None:
        self._settings = settings
        self._ack_wait_s = ack_wait_s
        self._on_lost = on_lost
        self._held: dict[str, _Lease] = {}
        self._renewed_at = 0.0  # boot time of the last renewal that surely reached the server
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started: threading.Event = threading.Event()
        self._failure: BaseException | None = None
        self._wait_s = 10.0
        self._thread = threading.Thread(target=self._run, name="waybook-heartbeat", daemon=True)

    def start(self, *, wait_s: float = 10.0) -> None:
        """Connects. Raises PortUnavailable after `wait_s`, PortMisconfigured. Blocks; call it in a thread on a loop."""
        self._wait_s = wait_s
        self._thread.start()
        if not self._started.wait(wait_s + 5.0):
            raise PortUnavailable("the heartbeat's connection to NATS did not come up")
        if isinstance(self._failure, PortMisconfigured | PortError):
            raise type(self._failure)(str(self._failure)) from self._failure

    def stop(self) -> None:
        """Ends the thread; leases that are held lapse after ack_wait. Blocks for a moment."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        if self._thread.is_alive():
            self._thread.join(10.0)

    def hold(self, ack_subject: str, until_ms: int) -> None:
        """Renews this delivery's lease until `drop` or `until_ms` (epoch, UTC), whichever is first. Any thread.

        How long that is counts from now: a clock that jumps ahead lets no lease lapse.
        """
        now = _boot_time()
        until = now + until_ms / 1000 - time.time()
        known = self._held.get(ack_subject)
        if known is not None:
            known.until = until  # should it be dropped in this moment, it counts as broken
            return
        with self._lock:
            self._held[ack_subject] = _Lease(now, until)

    def drop(self, ack_subject: str) -> None:
        """Renews it no longer. Any thread; unknown ones are fine."""
        with self._lock:
            self._held.pop(ack_subject, None)

    def is_broken(self, ack_subject: str) -> bool:
        """See Heartbeat. A delivery may have waited half a lease before `hold`, so its first renewal is due sooner."""
        lease, renewed_at = self._held.get(ack_subject), self._renewed_at
        if lease is None:
            return True
        if lease.since <= renewed_at:
            return _boot_time() - renewed_at > self._ack_wait_s
        return _boot_time() - lease.since > self._ack_wait_s / 2

    @property
    def held(self) -> int:
        """How many leases are held."""
        return len(self._held)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except (PortError, PortMisconfigured) as exc:
            self._failure = exc
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with await Connection.open(self._settings, wait_s=self._wait_s) as connection:
            self._started.set()
            await self._beat(connection, self._stop)

    async def _beat(self, connection: Connection, stop: asyncio.Event) -> None:
        confirmed = _boot_time()
        while not stop.is_set():
            now = _boot_time()
            if now - confirmed > self._ack_wait_s and self._lose(now - confirmed):
                confirmed = now
            if await self._renew(connection):
                confirmed = now
                with self._lock:
                    self._renewed_at = now
            try:
                await asyncio.wait_for(stop.wait(), self._ack_wait_s / 4)
            except TimeoutError:
                continue

    async def _renew(self, connection: Connection) -> bool:
        """Whether the server surely has the renewals, or there was nothing to renew."""
        now = _boot_time()
        with self._lock:
            self._held = {subject: lease for subject, lease in self._held.items() if lease.until > now}
            held = list(self._held)
        if not held:
            return connection.connected
        try:
            frames = [publish_frame(subject.encode(), b"", b"+WPI") for subject in held]
            connection.send(b"".join(frames))
            await connection.confirm(self._ack_wait_s / 8)
        except (PortError, PortMisconfigured) as exc:
            log.warning("leases were not renewed", extra={"action": "heartbeat_failed", "error": str(exc)})
            return False
        return True

    def _lose(self, away_s: float) -> bool:
        with self._lock:
            held = len(self._held)
            self._held.clear()
        if held:
            log.error(
                "all claims are lost, the leases were not renewed in time",
                extra={"action": "claims_lost", "held": held, "away_s": round(away_s, 3)},
            )
            self._on_lost()
        return True


def _boot_time() -> float:
    """Seconds on a clock that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)

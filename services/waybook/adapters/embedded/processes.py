"""Child processes that outlive their parent's memory: started here, or found again by a later owner.

A pid alone names nothing, since it is given again after its process has ended. A process is therefore known by its
pid and the time it started, and no signal is sent to a pid whose start time differs.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

_POLL_S = 0.005
_POLL_SLOW_S = 0.05


class ProcessId(msgspec.Struct, frozen=True):
    """A process, told apart from every other that had or will have its pid. `started` is opaque."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """False once it has ended, also while it still waits as a zombie."""
        return identify(self.pid) == self


def identify(pid: int) -> ProcessId | None:
    """The living process with this pid, or None."""
    started = _started_linux(pid) if sys.platform == "linux" else _started_ps(pid)
    return ProcessId(pid, started) if started else None


def command_line(pid: int) -> str:
    """The arguments of the process, joined by blanks; empty when there is none or it may not be read."""
    try:
        if sys.platform == "linux":
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return _ps(pid, "command=")
    except OSError:
        return ""


def _started_linux(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "" if fields[0] in "ZXx" else f"{boot}:{fields[19]}"


def _started_ps(pid: int) -> str:
    state, _, started = _ps(pid, "stat=,lstart=").partition(" ")
    return "" if state.startswith("Z") else started.strip()


def _ps(pid: int, columns: str) -> str:
    asked = subprocess.run(["ps", "-o", columns, "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


class Process:
    """A process to wait for and to signal. Bound to no event loop: every method may be awaited from any.

    It runs in a session of its own, so that Ctrl-C reaches its owner alone and the shutdown stays orderly.
    """

    def __init__(self, identity: ProcessId, popen: "subprocess.Popen[bytes] | None" = None) -> None:
        self.identity = identity
        self._popen = popen

    @classmethod
    def start(
        cls,
        arguments: Sequence[str | Path],
        *,
        output: Path,
        directory: Path,
        user: tuple[int, int] | None = None,
        keep_open: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Starts a program; what it prints is appended to `output`.

        `user` is (uid, gid) to run under, by default the own; `keep_open` are file descriptors that it inherits.
        Raises OSError when the program cannot be executed.
        """
        with output.open("ab") as log:
            popen = subprocess.Popen(
                [str(argument) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=directory,
                user=user[0] if user else None,
                group=user[1] if user else None,
                extra_groups=[] if user else None,
                pass_fds=keep_open,
                env=environment,
                start_new_session=True,
            )
        return cls(identify(popen.pid) or ProcessId(popen.pid, ""), popen)

    @property
    def pid(self) -> int:
        return self.identity.pid

    @property
    def adopted(self) -> bool:
        """Whether an earlier owner started it."""
        return self._popen is None

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None if self._popen else self.identity.alive

    @property
    def exit_code(self) -> int | None:
        """Negative: ended by that signal. None: alive, or adopted."""
        return self._popen.poll() if self._popen else None

    def send(self, number: int) -> None:
        """Sends a signal; nothing happens when the process has ended."""
        if self._popen:
            self._popen.send_signal(number)
        elif hasattr(os, "pidfd_open"):
            self._send_by_descriptor(number)
        elif self.identity.alive:
            os.kill(self.pid, number)

    def _send_by_descriptor(self, number: int) -> None:
        """The descriptor holds on to the process, so that its pid cannot change hands before the signal."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.identity.alive:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)

    async def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within that time."""
        end = time.monotonic() + timeout_s
        pause = _POLL_S
        while self.alive:
            if time.monotonic() >= end:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, _POLL_SLOW_S)
        return True

    async def stop(self, *steps: tuple[int, float]) -> None:
        """Sends each signal in turn and waits the seconds beside it, at last SIGKILL."""
        for number, timeout_s in (*steps, (signal.SIGKILL, 10.0)):
            self.send(number)
            if await self.wait(timeout_s):
                return

"""Starts, watches and stops the process of a local model."""

import asyncio
import contextlib
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import IO

import msgspec

from waybook.adapters.models.local_child import KEY
from waybook.agents.model import ModelUnavailable

STOP_S = 5.0
_TAIL = 2000


class _Ready(msgspec.Struct):
    url: str


class LocalServer:
    """llama.cpp's server with one GGUF file, on a free port of loopback, with a key that only this process knows.

    `context`: tokens of question and answer together. `start_s`: how long loading may take.
    """

    def __init__(self, file: str, *, threads: int = 1, context: int = 4096, start_s: float = 60.0) -> None:
        self._file = Path(file)
        self._threads = threads
        self._context = context
        self._start_s = start_s
        self._process: asyncio.subprocess.Process | None = None
        self._said: IO[bytes] | None = None
        self.key = secrets.token_urlsafe(24)
        self.url = ""

    @property
    def name(self) -> str:
        """The model's name: that of its file."""
        return self._file.stem

    @property
    def context(self) -> int:
        """Tokens of question and answer together."""
        return self._context

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._process.pid if self.is_running and self._process is not None else None

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Loads the model; one that runs goes on. Raises ModelUnavailable with the process's last words."""
        if self.is_running:
            return
        await self.stop()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop
        options = {"file": self._file, "name": self.name, "threads": self._threads, "context": self._context}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "waybook.adapters.models.local_child",
            *(f"--{name}={value}" for name, value in options.items()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, KEY: self.key},
        )
        try:
            async with asyncio.timeout(self._start_s):
                self.url = await self._ready(self._process)
        except TimeoutError as error:
            await self.stop()
            raise ModelUnavailable(f"the local model {self.name} was not loaded within {self._start_s:g} s") from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Ends the process; one that does not end by itself within 5 s is killed."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._said is not None:
            self._said.close()
            self._said = None

    async def _ready(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        line = await process.stdout.readline()
        try:
            return f"{msgspec.json.decode(line, type=_Ready).url}/v1"
        except msgspec.MsgspecError as error:
            await process.wait()
            raise ModelUnavailable(f"the local model {self.name} cannot be loaded: {self._last_words()}") from error

    def _last_words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _TAIL))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

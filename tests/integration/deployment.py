"""A deployment as `deploy/nats` describes it: the real server, the configured users, a process for each service."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waybook.adapters.embedded.free_port import free_port
from waybook.adapters.embedded.given import check_nats
from waybook.adapters.embedded.programs import nats_server
from waybook.events.errors import RetryableError, TerminalError

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nats" / "nats-server.conf"
USERS = ("ops", "walker", "scheduler", "projector", "cli", "sys")
MAIN = "from waybook.cli import main; main()"
WITHIN_S = 60.0


def password(user: str) -> str:
    return f"secret-of-{user}"


def server_environment(folder: Path) -> dict[str, str]:
    """What the configuration reads from the environment."""
    own = {f"WAYBOOK_NATS_{user.upper()}_PASSWORD": password(user) for user in USERS}
    return {"WAYBOOK_NATS_STORE_DIR": str(folder), **own}


class Deployment:
    """A nats-server at work, and commands run as one of its users."""

    def __init__(self, port: int, monitor_port: int) -> None:
        self._port = port
        self.monitor_url = f"http://127.0.0.1:{monitor_port}"

    def url(self, user: str) -> str:
        return f"nats://{user}:{password(user)}@127.0.0.1:{self._port}"

    def start(self, user: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """A command of `waybook` that goes on by itself."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("WAYBOOK_")}
        own |= {
            "WAYBOOK_NATS_URL": self.url(user),
            "WAYBOOK_NATS_INBOX_PREFIX": f"_INBOX_{user}",
            "WAYBOOK_NATS_MONITOR_URL": self.monitor_url,
        }
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments],
            env=own | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def shell(self, script: str, database_url: str) -> "subprocess.Popen[str]":
        """The commands of a guide, with its addresses replaced by ours; the last one in the shell's own process."""
        *before, last = script.splitlines()
        for theirs, ours in (
            ("127.0.0.1:4222", f"127.0.0.1:{self._port}"),
            ("http://127.0.0.1:8222", self.monitor_url),
            ("postgresql://waybook@127.0.0.1/waybook", shlex.quote(database_url)),
            (" 9477", " 0"),
            (" 9478", " 0"),
            (" 9479", " 0"),
        ):
            before = [line.replace(theirs, ours) for line in before]
            last = last.replace(theirs, ours)
        own = {name: value for name, value in os.environ.items() if not name.startswith("WAYBOOK_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
        return subprocess.Popen(
            ["bash", "-euc", "\n".join([*before, f"exec {last}"])],
            env=own | server_environment(Path("/nowhere")) | {"PATH": path},
            cwd=CONFIGURATION.parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, user: str, *arguments: str, code: int = 0, **environment: str) -> str:
        """The output of a command that ends with `code`."""
        process = self.start(user, *arguments, **environment)
        output, errors = process.communicate(timeout=WITHIN_S)
        assert process.returncode == code, (arguments, output, errors)
        return output if code == 0 else output + errors

    def json(self, user: str, *arguments: str, **environment: str) -> Any:
        return json.loads(self.run(user, *arguments, "--json", code=0, **environment))


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """The configured server on free ports, with its store in `folder`, for the time of the block."""
    port, monitor_port = free_port(), free_port()
    words = [str(nats_server()), "-c", str(CONFIGURATION), "-p", str(port), "-m", str(monitor_port)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(words, env=os.environ | server_environment(folder), stdout=log, stderr=log)
    try:
        asyncio.run(_until_up(server, f"nats://127.0.0.1:{port}"))
        yield Deployment(port, monitor_port)
    finally:
        server.terminate()
        server.wait(WITHIN_S)


@contextmanager
def service(process: "subprocess.Popen[str]", ready: str) -> Iterator[list[str]]:
    """What a service says until a line that holds `ready`; it is ended in order after the block."""
    said: list[str] = []
    try:
        assert process.stdout is not None
        while ready not in (line := process.stdout.readline()):
            assert line, (said, process.communicate())
            said.append(line)
        said.append(line)
        yield said
    finally:
        process.terminate()
        output, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, (said, output, errors)


async def _until_up(server: "subprocess.Popen[bytes]", url: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            assert server.poll() is None, f"it ended with code {server.returncode}"
            try:
                await check_nats(url, timeout_s=1.0)
                return
            except (RetryableError, TerminalError):
                await asyncio.sleep(0.02)

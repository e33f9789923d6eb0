"""How many commits a second go through the STATE port: `python -m bench.append`.

Each writer walks a run of its own: it appends, waits until the commit is durable, and appends the next. Printed are
commits/s, the CPU time of this process and of nats-server for each commit, and how many batches were used. The
figures of one run on one machine are to be compared with each other, not with those of another machine.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from waybook.adapters.embedded.nats_server import NatsServer
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.group_commit import GroupSettings
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.adapters.nats.topology import apply, load_topology
from waybook.engine.ports import Draft

STREAM = "STATE_g1_00"
TICKS = os.sysconf("SC_CLK_TCK")
HEADERS = {
    "Waybook-Commit": "c" * 52,
    "Waybook-Prev": "p" * 52,
    "Waybook-Definition": "d" * 26,
    "Waybook-Types": "StepCompleted,Transitioned,StepBegan",
    "Waybook-Causation": "e" * 26,
    "Waybook-Correlation": "f" * 26,
}


class Figures(msgspec.Struct, frozen=True):
    """One measurement; CPU in microseconds for each commit."""

    commits_s: float
    client_us: float
    server_us: float
    p50_ms: float
    batches: int


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", default="1,64,256", help="how many side by side (default %(default)s)")
    parser.add_argument("--commits", type=int, default=8000, help="in all, for each number of writers above one")
    parser.add_argument("--rounds", type=int, default=3, help="the median round is printed (default %(default)s)")
    parser.add_argument("--sync", choices=("always", "default"), default="always")
    parser.add_argument("--bytes", type=int, default=600, help="payload of a commit (default %(default)s)")
    parser.add_argument("--work-us", type=float, default=0.0, help="CPU that a writer burns before each commit")
    parser.add_argument("--eager", type=int, default=GroupSettings().eager)
    parser.add_argument("--open", type=int, default=GroupSettings().open_batches, help="open batches at most")
    parser.add_argument("--no-uvloop", action="store_true")
    parser.add_argument("--profile", action="store_true", help="print where the time of this process goes")
    return parser.parse_args()


def server_seconds(pid: int) -> float:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def write(log: NatsStateLog, run: str, count: int, args: argparse.Namespace, times: list[float]) -> None:
    """One run's commits, each behind the one before."""
    subject = f"state.g1.00.bench.inbox.{run}"
    payload = b'{"version":1,"events":["%b"]}' % (b"x" * args.bytes)
    expected = 0
    for _ in range(count):
        began = time.perf_counter()
        while time.perf_counter() - began < args.work_us / 1e6:
            pass
        expected = await log.append(Draft(subject, expected, payload, HEADERS, HEADERS["Waybook-Commit"]))
        times.append(time.perf_counter() - began)


async def measure(server: NatsServer, log: NatsStateLog, writers: int, name: str, args: argparse.Namespace) -> Figures:
    """One round."""
    assert server.process is not None
    count = (args.commits if writers > 1 else min(args.commits, 500)) // writers
    times: list[float] = []
    wall, own, theirs = time.perf_counter(), time.process_time(), server_seconds(server.process.pid)
    batches = log.batches
    await asyncio.gather(*(write(log, f"{name}x{i}", count, args, times) for i in range(writers)))
    wall, own = time.perf_counter() - wall, time.process_time() - own
    theirs = server_seconds(server.process.pid) - theirs
    total = count * writers
    return Figures(
        total / wall, own / total * 1e6, theirs / total * 1e6, statistics.median(times) * 1e3, log.batches - batches
    )


@asynccontextmanager
async def embedded(*, sync_always: bool) -> AsyncIterator[NatsServer]:
    """A nats-server of the measurement's own, whose process can be looked at."""
    with tempfile.TemporaryDirectory(prefix="waybook-bench-") as folder:
        server = NatsServer(Path(folder) / "nats", sync_always=sync_always)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


async def main(args: argparse.Namespace) -> None:
    """Measures and prints."""
    group = GroupSettings(eager=args.eager, open_batches=args.open)
    print(f"{'writers':>8} {'commits/s':>10} {'p50 ms':>8} {'client us':>10} {'server us':>10} {'batches':>8}")
    async with embedded(sync_always=args.sync == "always") as server:
        async with await Connection.open(NatsSettings(servers=(server.url,))) as connection:
            await apply(connection.client, load_topology())
            log = NatsStateLog(connection, STREAM, group)
            for writers in (int(part) for part in args.writers.split(",")):
                rounds = [await measure(server, log, writers, f"w{writers}r{r}", args) for r in range(args.rounds)]
                f = sorted(rounds, key=lambda figures: figures.commits_s)[len(rounds) // 2]
                print(
                    f"{writers:8d} {f.commits_s:10.0f} {f.p50_ms:8.2f} {f.client_us:10.1f} {f.server_us:10.1f} "
                    f"{f.batches:8d}"
                )


def run() -> None:
    """Runs it on uvloop when that is installed."""
    args = parse()
    profile = cProfile.Profile() if args.profile else None
    if profile:
        profile.enable()
    try:
        if args.no_uvloop:
            raise ImportError
        import uvloop
    except ImportError:
        asyncio.run(main(args))
    else:
        uvloop.run(main(args))
    if profile:
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    run()

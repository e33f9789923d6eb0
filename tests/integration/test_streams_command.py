"""`waybook streams`: exit codes, JSON, and what stands on the terminal."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import nats
import pytest
import pytest_asyncio

from waybook.adapters.nats.topology.file import default_file
from waybook.cli import main
from waybook.testing.servers import NatsUnderTest, nats_for_tests

DONE, REFUSED, USAGE = 0, 1, 2


class Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Streams(Protocol):
    """Runs `waybook streams` with these settings and no others."""

    def __call__(self, *arguments: str, **environment: str) -> Ended: ...


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Streams:
    """In this process, which is quicker; what a user's process adds is tested once, at the end."""

    def run(*arguments: str, **environment: str) -> Ended:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("WAYBOOK_")]:
                patch.delenv(name)
            for name, value in {"COLUMNS": "200", **environment}.items():
                patch.setenv(name, value)
            patch.setattr("sys.argv", ["waybook", "streams", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, printed.out, printed.err)

    return run


@pytest_asyncio.fixture
async def lax_server() -> AsyncIterator[NatsUnderTest]:
    """A server with the default sync."""
    async with nats_for_tests(sync_always=False) as server:
        yield server


@pytest.fixture
def given(clean_nats: NatsUnderTest) -> dict[str, str]:
    """The environment that names the session's server."""
    return {"WAYBOOK_NATS_URL": clean_nats.url, "WAYBOOK_NATS_MONITOR_URL": clean_nats.monitor_url}


def by_hand(url: str, call: str, body: object) -> None:
    """A change that somebody makes with other tools."""

    async def ask() -> bytes:
        client = await nats.connect(url)
        try:
            return (await client.request(f"$JS.API.{call}", msgspec.json.encode(body) if body else b"", timeout=5)).data
        finally:
            await client.close()

    assert b'"error"' not in asyncio.run(ask())


def test_plan_apply_check(streams: Streams, given: dict[str, str]) -> None:
    """What is planned is done, a second apply does nothing, and the check is clean: 0 each time."""
    planned = streams("plan", "--json", **given)
    applied = streams("apply", "--json", **given)
    again = streams("apply", "--json", **given)
    checked = streams("check", "--json", **given)
    assert [ended.code for ended in (planned, applied, again, checked)] == [DONE] * 4
    assert {change["action"] for change in planned.json["changes"]} == {"create"}
    assert planned.json["changes"] == applied.json["changes"] and applied.json["left"] == []
    assert again.json["empty"] is True
    assert checked.json == {
        "server": checked.json["server"],
        "checked": len(applied.json["changes"]),
        "findings": [],
        "sync": {"verdict": "proven", "detail": "sync always on 1 server"},
        "ok": True,
    }


def test_tables_for_people(streams: Streams, given: dict[str, str]) -> None:
    """Without --json the same stands in tables, with a sentence at the end."""
    assert "STATE_g1_00" in streams("plan", **given).out
    assert streams("apply", **given).out.splitlines()[-1] == "18 changed, 0 as declared"
    by_hand(given["WAYBOOK_NATS_URL"], "STREAM.DELETE.DEAD", None)
    out = streams("check", **given).out
    assert "no such stream; `waybook streams apply` makes it" in out
    assert "1 breaking and 0 harmless differences" in out and "sync always: proven" in out


def test_unproven_sync_is_refused(streams: Streams, given: dict[str, str]) -> None:
    """Without a monitoring address the check says unproven and ends with 1."""
    streams("apply", **given)
    ended = streams("check", WAYBOOK_NATS_URL=given["WAYBOOK_NATS_URL"])
    assert ended.code == REFUSED and "sync always: unproven" in ended.out and "WAYBOOK_NATS_MONITOR_URL" in ended.out


def test_default_sync_is_refused(streams: Streams, lax_server: NatsUnderTest) -> None:
    """A server that acknowledges before it syncs ends the check with 1."""
    streams("apply", "--nats-url", lax_server.url)
    ended = streams("check", "--json", "--nats-url", lax_server.url, "--monitor-url", lax_server.monitor_url)
    assert ended.code == REFUSED and ended.json["findings"] == [] and ended.json["sync"]["verdict"] == "refuted"


def test_a_broken_invariant_is_refused(streams: Streams, given: dict[str, str]) -> None:
    """A stream that somebody made with schedules has lost its deny_purge: found, and apply asks for a person."""
    config = {
        "name": "AUDIT", "subjects": ["audit.*.log"], "storage": "file", "num_replicas": 1, "discard": "old",
        "deny_purge": True, "allow_msg_schedules": True,
    }  # fmt: skip
    by_hand(given["WAYBOOK_NATS_URL"], "STREAM.CREATE.AUDIT", config)
    checked, planned, applied = (streams(*args, **given) for args in (("check", "--json"), ("plan",), ("apply",)))
    assert (checked.code, planned.code, applied.code) == (REFUSED, REFUSED, REFUSED)
    purge = next(f for f in checked.json["findings"] if (f["name"], f["field"]) == ("AUDIT", "deny_purge"))
    assert (purge["declared"], purge["stored"]) == ("true", "false") and "purged" in purge["breaks"]
    assert "person" in planned.out
    assert applied.err.startswith("error: AUDIT: ") and "cannot be switched off again" in applied.err


def test_a_mistake_in_the_file_names_its_line(streams: Streams, given: dict[str, str], tmp_path: Path) -> None:
    """An unknown key ends with 2 and a message that an editor can jump to."""
    file = tmp_path / "mine.yaml"
    text = default_file().read_text(encoding="utf-8")
    file.write_text(text.replace("    deny_purge: true", "    deny_purges: true", 1))
    line = text.splitlines().index("    deny_purge: true") + 1
    ended = streams("plan", "--file", str(file), **given)
    assert ended.code == USAGE
    assert f"{file}:{line}: unknown key `deny_purges` in streams.STATE_g1_00; allowed: " in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["check", "--file", "/nowhere.yaml"], USAGE, "cannot read the topology file /nowhere.yaml"),
        (["plan", "--nats-url", "nats://127.0.0.1:9"], REFUSED, "no nats-server answers at nats://127.0.0.1:9"),
        (["check", "--replicas", "9"], USAGE, "--replicas"),
        (["check", "--unheard-of"], USAGE, "No such option"),
        (["frobnicate"], USAGE, "No such command"),
    ],
)
def test_bad_input_is_refused(streams: Streams, arguments: list[str], code: int, message: str) -> None:
    """Usage ends with 2, a server that is away with 1; the message says what is wrong."""
    ended = streams(*arguments)
    assert ended.code == code and message in ended.err and "Traceback" not in ended.err


def test_a_configured_lease_wins_over_the_files(streams: Streams, given: dict[str, str]) -> None:
    """WAYBOOK_ACK_WAIT_S is what walkers renew by, so it is what the consumers get."""
    streams("apply", WAYBOOK_ACK_WAIT_S="2", **given)
    found = streams("check", "--json", **given).json["findings"]
    fires = [f"TIMERS/fire_{kind}" for kind in ("send", "deadline", "retry", "wait")]
    names = ["STATE_g1_00/relay", "COMMANDS/ctl_any", "COMMANDS/new_any", "COMMANDS/step_any", *fires]
    assert [(f["name"], f["declared"], f["stored"]) for f in found] == [(name, "1m", "2s") for name in names]
    assert streams("check", WAYBOOK_ACK_WAIT_S="2", **given).code == DONE


def test_probes_need_no_server(streams: Streams) -> None:
    """`check --probe` brings its own server and ends with 0 when every answer is as expected."""
    ended = streams("check", "--probe", "--json", WAYBOOK_NATS_URL="nats://127.0.0.1:9")
    assert ended.code == DONE and ended.json["ok"] is True and ended.err == ""
    assert len(ended.json["probes"]) == 11
    assert set(ended.json["probes"][0]) == {"id", "question", "expected", "seen", "ok", "note"}


def test_the_data_directorys_server(reachable_folder: Path) -> None:
    """Without an address the data directory's server is started for the command, and keeps what was applied."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAYBOOK_")}
    environment["WAYBOOK_DATA_DIR"] = str(reachable_folder / "data")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from waybook.cli import main; main()", "streams", *arguments]
        return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=60)

    assert run("apply").returncode == DONE
    ended = run("check", "--json")
    assert ended.returncode == DONE and json.loads(ended.stdout)["ok"] is True

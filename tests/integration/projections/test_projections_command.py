"""`waybook projections`: exit codes, JSON, and what stands on the terminal."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.integration.projections.installation import STREAM, Installation

from waybook.testing.servers import ServerUnderTest

DONE, REFUSED, USAGE = 0, 1, 2


class Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Awaitable[Ended]]


@pytest.fixture
def projections(installation: Installation) -> Command:
    """Runs `waybook projections` on the test's servers, as a user's shell would."""

    async def run(*arguments: str, **environment: str) -> Ended:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WAYBOOK_")}
        given = {"WAYBOOK_NATS_URL": installation.nats_url, "WAYBOOK_DATABASE_URL": installation.database_url}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from waybook.cli import main; main()", "projections", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**clean, "COLUMNS": "200", **given, **environment},
        )
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

    return run


async def test_status_shows_the_lag(installation: Installation, projections: Command) -> None:
    await installation.project_until(await installation.append_walks(2))
    await installation.append_walks(1, first=9)
    ended = await projections("status", "--json")
    (stream,) = ended.json["streams"]
    lag = stream.pop("lag_seconds")
    assert 0 < lag < 60
    expected = {"stream": STREAM, "checkpoint": 12, "last_sequence": 18, "lag_events": 6, "active": False}
    assert stream == expected
    assert {**ended.json, "streams": []} == {"generation": 1, "outdated": False, "streams": [], "ok": True}
    assert ended.code == DONE
    ended = await projections("status")
    assert ended.code == DONE
    assert STREAM in ended.out
    assert ended.err == ""


async def test_status_without_read_models_says_what_to_do(projections: Command) -> None:
    ended = await projections("status", "--json")
    assert (ended.code, ended.out) == (REFUSED, "")
    assert "waybook projections rebuild" in ended.err


async def test_status_refuses_a_stream_that_lost_commits(installation: Installation, projections: Command) -> None:
    await installation.project_until(await installation.append_walks(2))
    await installation.client.jetstream().delete_stream(STREAM)
    ended = await projections("status")
    assert ended.code == REFUSED
    assert "commits were lost" in ended.out


async def test_rebuild_then_verify(installation: Installation, projections: Command) -> None:
    await installation.append_walks(5)
    ended = await projections("rebuild", "--json")
    assert ended.code == DONE
    assert {**ended.json, "seconds": 0} == {"commits": 30, "generation": 1, "replaced": None, "seconds": 0}
    assert (await projections("rebuild")).out.startswith("rebuilt from 30 commits in ")
    ended = await projections("verify", "--json")
    expected = {"commits": 30, "rows": 30, "differing": 0, "differences": [], "ok": True}
    assert (ended.code, ended.json) == (DONE, expected)


async def test_verify_shows_what_was_changed_by_hand(installation: Installation, projections: Command) -> None:
    await installation.project_until(await installation.append_walks(2))
    await installation.execute("UPDATE inbound_messages SET status = 'sent' WHERE run = 'run000001'")
    ended = await projections("verify")
    assert ended.code == REFUSED
    assert "1 of 12 rows differ from what 12 commits say" in ended.out
    assert "run000001" in ended.out
    ended = await projections("verify", "--json")
    (difference,) = ended.json["differences"]
    assert ended.code == REFUSED
    assert difference["columns"] == {"status": {"stored": "sent", "expected": "draft_ready"}}


async def test_servers_that_do_not_answer_are_named(own_postgres: ServerUnderTest, projections: Command) -> None:
    url = own_postgres.url
    await own_postgres.stop()
    ended = await projections("status", WAYBOOK_DATABASE_URL=url)
    assert (ended.code, ended.out) == (REFUSED, "")
    assert "Traceback" not in ended.err
    ended = await projections("verify", WAYBOOK_NATS_URL="nats://127.0.0.1:1")
    assert (ended.code, ended.out) == (REFUSED, "")
    assert "nats" in ended.err.lower()


async def test_wrong_options_are_usage_errors(projections: Command) -> None:
    assert (await projections("rebuild", "--fast")).code == USAGE

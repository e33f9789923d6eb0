"""The server configuration in `deploy/nats` is accepted by the real server, and lets each role do its work and no more."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import nats
import pytest
from nats.aio.client import Client
from tests.integration.deployment import CONFIGURATION, Deployment, deployed, server_environment, service
from tests.integration.scraping import addresses, scrape, until

from waybook.adapters.embedded.programs import nats_server
from waybook.adapters.nats.command_queue import NatsCommandQueue
from waybook.adapters.nats.connection import Connection
from waybook.adapters.nats.notices import NatsNotices
from waybook.adapters.nats.settings import NatsSettings
from waybook.adapters.nats.state_log import NatsStateLog
from waybook.adapters.nats.timers import NatsTimers
from waybook.engine.ports import TimerRef
from waybook.events.codec import Codec
from waybook.events.subjects import RunKey
from waybook.services.scheduler.runs import Runs

GUIDE = Path(__file__).parents[2] / "docs" / "operating.md"
SAMPLES = Path(__file__).parents[2] / "samples" / "mail"


def _look_at_the_files(environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAYBOOK_NATS_")}
    words = [str(nats_server()), "-c", str(CONFIGURATION), "-t"]
    return subprocess.run(words, env=own | environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_server_accepts_the_files_only_with_all_that_they_ask_for(tmp_path: Path) -> None:
    """`nats-server -t` passes, and names a variable that is not set; the example sets all of them."""
    environment = server_environment(tmp_path)
    good = _look_at_the_files(environment)
    assert good.returncode == 0, good.stderr
    for name in environment:
        bad = _look_at_the_files({key: value for key, value in environment.items() if key != name})
        assert bad.returncode != 0 and name in bad.stderr
    example = (CONFIGURATION.parent / "nats.env.example").read_text()
    assert [line.partition("=")[0] for line in example.splitlines() if not line.startswith("#")] == list(environment)


def guide(role: str) -> str:
    """The commands of a role in the operators' guide."""
    found = re.search(rf"<!-- run by \S+: {role} -->\n```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None, role
    return "".join(line.removeprefix("$ ") + "\n" for line in found[1].splitlines())


def _end(process: "subprocess.Popen[str]") -> str:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, (output, errors)
    return output


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The configured server with the streams that its operator made, as the guide says."""
    with deployed(tmp_path_factory.mktemp("nats")) as made:
        refusal = made.run("walker", "serve", "walker", code=1)
        assert "waybook streams apply" in refusal
        _end(made.shell(guide("ops"), ""))
        yield made


def test_what_the_operator_applied_is_what_is_declared_and_syncs_always(deployment: Deployment) -> None:
    """`streams check` as the user `ops` finds nothing, and proves sync always at the monitoring address."""
    report = deployment.json("ops", "streams", "check")
    assert report["ok"] is True and report["findings"] == []
    assert report["sync"]["verdict"] == "proven"
    assert "create" not in deployment.run("ops", "streams", "plan")


def test_services_with_users_of_their_own_walk_mails(deployment: Deployment, database_url: str) -> None:
    """The guide's walker, projector and person, each as a user of its own: the samples are walked, shown, and counted."""
    database = {"WAYBOOK_DATABASE_URL": database_url}
    walker = deployment.shell(guide("walker"), database_url)
    projector = deployment.shell(guide("projector"), database_url)
    scheduler = deployment.shell(guide("scheduler"), database_url)
    with (
        service(walker, "walking") as walker_said,
        service(projector, "metrics") as projector_said,
        service(scheduler, "scheduling") as scheduler_said,
    ):
        until(lambda: scrape(addresses(projector_said)[0]).sum("waybook_projector_active") == 1)
        assert "taken in" in _end(deployment.shell(guide("cli"), database_url))
        until(lambda: scrape(addresses(walker_said)[0]).sum("waybook_slots_taken") == 0)
        settled = deployment.json("cli", "messages", **database)
        assert all(m["status"] in ("archived", "rejected") or m["hold"] != "none" for m in settled)
        runs = {m["run"] for m in settled}
        assert len(runs) == sum(1 for path in SAMPLES.iterdir() if path.suffix == ".eml")
        assert {"draft_ready", "quarantined", "archived"} <= {m["status"] for m in settled}
        draft = next(m["run"] for m in settled if m["status"] == "draft_ready")
        assert deployment.json("cli", "why", draft, **database)["hold"]["reason"] == "approval"
        walked = scrape(addresses(walker_said)[0])
        assert walked.sum("waybook_commits_total", agent="inbox") >= len(runs)
        assert walked.sum("waybook_jetstream_answers") == 1
        projected = scrape(addresses(projector_said)[0])
        assert projected.sum("waybook_projection_lag_events") == 0
        assert scrape(addresses(scheduler_said)[0]).sum("waybook_scheduler_healthy") == 1
        assert deployment.json("projector", "projections", "verify", **database)["ok"] is True
        assert [a["run"] for a in deployment.json("cli", "approvals", **database) if a["run"] == draft] == [draft]
        assert deployment.json("cli", "show", draft, **database)[0]["type"] == "RunStarted"
        assert deployment.json("cli", "approve", draft, "--as", "ann", **database)["ok"]
        assert deployment.json("cli", "kill-switch", "status", **database)["on"] is False
        cancelled = deployment.json("cli", "cancel", draft, "--reason", "enough", **database)
        assert cancelled["run"] == draft and cancelled["ok"] is True
        assert "refused (terminal)" in deployment.run("cli", "retry", draft, code=1, **database)


async def test_the_scheduler_s_user_may_do_all_that_a_scheduler_does(deployment: Deployment) -> None:
    """Arm, cancel, take and acknowledge fires; read headers and commits, and acknowledge them; give commands."""
    settings = NatsSettings(servers=(deployment.url("scheduler"),), inbox_prefix="_INBOX_scheduler")
    async with await Connection.open(settings) as connection:
        timers = NatsTimers(connection)
        await timers.ensure_consumers()
        due, other = (TimerRef(RunKey("main", "none", "r"), name, "retry", 1) for name in ("1.0", "1.1"))
        await timers.arm(due)
        await timers.arm(msgspec.structs.replace(other, due=4_000_000_000_000))
        await timers.cancel(other.key, other.name)
        [fire] = await timers.pull("retry", 5, 10.0)
        await fire.ack()
        notices = NatsNotices(connection, "STATE_g1_00", {"RunStarted"})
        await notices.ensure_consumer()
        for notice in await notices.pull(5, 0.5):
            assert await notices.read(notice) is not None
        await notices.ack(())
        await NatsCommandQueue(connection).publish("cmd.ctl.any.relay.main.none.r.timer", b"{}", command="t1")
        assert await Runs(NatsStateLog(connection, "STATE_g1_00"), Codec()).load(due.key) is None
        await connection.confirm(5.0)
        assert connection.refused is None and not await timers.standing()


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("cli", "state.g1.00.main.inbox.forged"),
        ("projector", "state.g1.00.main.inbox.forged"),
        ("ops", "state.g1.00.main.inbox.forged"),
        ("cli", "cmd.ctl.any.relay.main.inbox.r.timer"),
        ("cli", "audit.in.main.refused-1-x"),
        ("projector", "cmd.new.any.cli.main.inbox.r.start"),
        ("scheduler", "state.g1.00.main.inbox.forged"),
        ("scheduler", "cmd.ctl.any.cli.main.inbox.r.retry"),
        ("scheduler", "$JS.API.STREAM.PURGE.COMMANDS"),
        ("walker", "timer.arm.retry.main.inbox.r.1.0"),
        ("cli", "timer.arm.retry.main.inbox.r.1.0"),
        ("walker", "audit.main.log"),
        ("walker", "$JS.API.STREAM.DELETE.STATE_g1_00"),
        ("walker", "$JS.API.STREAM.UPDATE.STATE_g1_00"),
        ("walker", "$JS.API.STREAM.MSG.DELETE.STATE_g1_00"),
        ("cli", "$JS.API.STREAM.PURGE.COMMANDS"),
        ("projector", "$JS.API.CONSUMER.MSG.NEXT.COMMANDS.new_any"),
    ],
)
async def test_nobody_publishes_what_is_another_role_s(deployment: Deployment, user: str, subject: str) -> None:
    """STATE has one writer, issuers cannot be forged, and only the operator changes streams."""
    said: list[str] = []
    client = await _connected(deployment, user, said)
    try:
        await client.publish(subject, b"{}")
        await client.flush()
        await _until_refused(said, subject)
    finally:
        await client.close()


@pytest.mark.parametrize(("user", "subject"), [("cli", "_INBOX_walker.>"), ("projector", "cmd.>"), ("cli", "state.>")])
async def test_nobody_reads_what_is_meant_for_others(deployment: Deployment, user: str, subject: str) -> None:
    """Answers, commands and commits are heard by those they are for."""
    said: list[str] = []
    client = await _connected(deployment, user, said)
    try:
        await client.subscribe(subject)
        await client.flush()
        await _until_refused(said, subject)
    finally:
        await client.close()


def test_a_wrong_password_is_refused_with_the_way_out(deployment: Deployment) -> None:
    """Nothing is tried again and again for a password that is wrong."""
    wrong = {"WAYBOOK_NATS_URL": deployment.url("ops").replace("secret", "wrong")}
    output = deployment.run("ops", "streams", "check", code=1, **wrong)
    assert "refuses the credentials" in output and "wrong-of-ops" not in output


async def _connected(deployment: Deployment, user: str, said: list[str]) -> Client:
    async def hear(error: Exception) -> None:
        said.append(str(error))

    return await nats.connect(deployment.url(user), error_cb=hear, allow_reconnect=False, inbox_prefix=f"_INBOX_{user}")


async def _until_refused(said: list[str], subject: str) -> None:
    async with asyncio.timeout(5):
        while not any("permissions violation" in text.lower() and subject.lower() in text.lower() for text in said):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

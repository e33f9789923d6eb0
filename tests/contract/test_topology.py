"""The topology against a real server: made once, compared field by field, refused where it breaks an invariant."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client

from waybook.adapters.embedded import programs, server_version
from waybook.adapters.embedded.free_port import free_port
from waybook.adapters.nats.topology import NeedsPerson, Topology, apply, check, load_topology, plan
from waybook.engine.ports import PortMisconfigured, PortUnavailable
from waybook.testing.servers import NatsUnderTest, nats_for_tests

NAMES = [
    "STATE_g1_00", "COMMANDS", "TIMERS", "AUDITIN", "AUDIT", "TRACE", "DEAD", "KV_snapshots", "OBJ_artifacts",
    "STATE_g1_00/projections", "STATE_g1_00/relay", "COMMANDS/ctl_any", "COMMANDS/new_any", "COMMANDS/step_any", "TIMERS/fire_send",
    "TIMERS/fire_deadline", "TIMERS/fire_retry", "TIMERS/fire_wait",
]  # fmt: skip


@pytest.fixture
def server(clean_nats: NatsUnderTest) -> NatsUnderTest:
    return clean_nats


@pytest_asyncio.fixture
async def nc(server: NatsUnderTest) -> AsyncIterator[Client]:
    client = await nats.connect(server.url)
    yield client
    await client.close()


@pytest.fixture
def topology() -> Topology:
    return load_topology()


async def api(nc: Client, call: str, body: object = None) -> dict[str, Any]:
    """What an operator does by hand."""
    answer = await nc.request(f"$JS.API.{call}", msgspec.json.encode(body) if body is not None else b"", timeout=5)
    decoded: dict[str, Any] = msgspec.json.decode(answer.data)
    assert "error" not in decoded, decoded["error"]
    return decoded


async def change(nc: Client, stream: str, **settings: object) -> None:
    """Changes settings of a stream by hand."""
    config = (await api(nc, f"STREAM.INFO.{stream}"))["config"]
    await api(nc, f"STREAM.UPDATE.{stream}", {**config, **settings})


async def test_apply_then_check_is_clean(nc: Client, server: NatsUnderTest, topology: Topology) -> None:
    """Everything that is declared is stored as declared, on a server that is proven to sync always."""
    done = await apply(nc, topology)
    report = await check(nc, topology, server.monitor_url)
    assert [change.name for change in done.of("create")] == NAMES
    assert report.findings == ()
    assert report.sync.verdict == "proven"
    assert report.ok and report.refusal() is None and report.checked == len(NAMES)


async def test_apply_twice_changes_nothing(nc: Client, topology: Topology) -> None:
    """A second apply does nothing."""
    await apply(nc, topology)
    assert (await apply(nc, topology)).empty
    assert (await plan(nc, topology)).empty


async def test_two_processes_may_apply_at_once(nc: Client, server: NatsUnderTest, topology: Topology) -> None:
    """Applying side by side ends in the declared state without an error."""
    other = await nats.connect(server.url)
    await asyncio.gather(apply(nc, topology), apply(other, topology))
    await other.close()
    assert (await plan(nc, topology)).empty


async def test_buckets_serve_the_client_library(nc: Client, topology: Topology) -> None:
    """The declared buckets are what a client takes for buckets."""
    await apply(nc, topology)
    js = nc.jetstream()
    snapshots, artifacts = await js.key_value("snapshots"), await js.object_store("artifacts")
    await snapshots.put("run", b"state")
    await artifacts.put("draft", b"text")
    assert (await snapshots.get("run")).value == b"state"
    assert (await artifacts.get("draft")).data == b"text"


async def test_a_harmless_change_by_hand_is_found_and_mended(nc: Client, topology: Topology) -> None:
    """A limit set by hand is reported as harmless and set back by apply; an operator's placement stays."""
    await apply(nc, topology)
    await change(nc, "STATE_g1_00", max_bytes=1 << 30, republish={"src": ">", "dest": "live.>"})
    report = await check(nc, topology)
    assert [(f.name, f.field, f.declared, f.stored, f.breaks) for f in report.findings] == [
        ("STATE_g1_00", "max_bytes", "unlimited", "1GiB", None)
    ]
    assert report.refusal() is None
    assert [change.name for change in (await apply(nc, topology)).of("update")] == ["STATE_g1_00"]
    config = (await api(nc, "STREAM.INFO.STATE_g1_00"))["config"]
    assert config["max_bytes"] == -1 and config["republish"] == {"src": ">", "dest": "live.>"}


@pytest.mark.parametrize(
    ("stream", "settings"),
    [
        ("STATE_g1_00", {"max_age": 3_600_000_000_000}),
        ("STATE_g1_00", {"discard": "old"}),
        ("STATE_g1_00", {"allow_direct": False}),
        ("STATE_g1_00", {"allow_atomic": False}),
        ("STATE_g1_00", {"allow_msg_ttl": True}),
        ("STATE_g1_00", {"subjects": ["state.>"]}),
        ("COMMANDS", {"max_age": 3_600_000_000_000}),
        ("COMMANDS", {"max_msgs_per_subject": 1, "discard_new_per_subject": True}),
        ("COMMANDS", {"allow_rollup_hdrs": True}),
        ("TIMERS", {"max_msgs": 1000}),
        ("OBJ_artifacts", {"max_age": 3_600_000_000_000}),
    ],
)
async def test_a_change_that_breaks_an_invariant_is_found(
    nc: Client, topology: Topology, stream: str, settings: dict[str, object]
) -> None:
    """Every setting by which messages could go is reported as breaking."""
    await apply(nc, topology)
    await change(nc, stream, **settings)
    report = await check(nc, topology)
    assert {(f.name, f.field) for f in report.breaking} == {(stream, field) for field in settings}
    assert stream in str(report.refusal())


async def test_silently_dropped_immutability_is_found(nc: Client, topology: Topology) -> None:
    """Schedules drop deny_purge and switch roll-ups on without an error: both are found, a person is asked."""
    config = {
        "name": "AUDIT", "subjects": ["audit.*.log"], "retention": "limits", "storage": "file", "num_replicas": 1,
        "discard": "old", "deny_delete": True, "deny_purge": True, "allow_direct": True, "allow_msg_schedules": True,
    }  # fmt: skip
    await api(nc, "STREAM.CREATE.AUDIT", config)
    found = {f.field for f in (await check(nc, topology)).breaking if f.name == "AUDIT"}
    assert found == {"allow_msg_schedules", "allow_rollup_hdrs", "deny_purge", "discard"}
    with pytest.raises(NeedsPerson, match="allow_msg_schedules cannot be switched off again"):
        await apply(nc, topology)


async def test_nothing_is_done_when_a_person_is_needed(nc: Client, topology: Topology) -> None:
    """A difference that cannot be changed stops apply before the first change."""
    await api(
        nc, "STREAM.CREATE.DEAD", {"name": "DEAD", "subjects": ["dead.>"], "storage": "memory", "num_replicas": 1}
    )
    with pytest.raises(NeedsPerson, match="storage of a stream cannot be changed"):
        await apply(nc, topology)
    assert (await api(nc, "STREAM.NAMES"))["streams"] == ["DEAD"]


async def test_a_missing_stream_and_consumer_are_found(nc: Client, topology: Topology) -> None:
    """What is not there breaks something."""
    await apply(nc, topology)
    await api(nc, "STREAM.DELETE.DEAD")
    await api(nc, "CONSUMER.DELETE.COMMANDS.ctl_any")
    assert {(f.name, f.stored) for f in (await check(nc, topology)).breaking} == {
        ("DEAD", "missing"),
        ("COMMANDS/ctl_any", "missing"),
    }


async def test_a_changed_consumer_is_found_and_mended(nc: Client, topology: Topology) -> None:
    """A lease of another length and a limit on deliveries are breaking; apply sets them back."""
    await apply(nc, topology)
    config = (await api(nc, "CONSUMER.INFO.COMMANDS.ctl_any"))["config"]
    body = {"stream_name": "COMMANDS", "config": {**config, "ack_wait": 10**9, "max_deliver": 5}, "action": "update"}
    await api(nc, "CONSUMER.CREATE.COMMANDS.ctl_any", body)
    report = await check(nc, topology)
    assert [(f.field, f.declared, f.stored) for f in report.breaking] == [
        ("ack_wait", "1m", "1s"),
        ("max_deliver", "unlimited", "5"),
    ]
    await apply(nc, topology)
    assert (await check(nc, topology)).findings == ()


async def test_a_paused_consumer_is_mentioned(nc: Client, topology: Topology) -> None:
    """A pause is an operator's decision: reported, not breaking."""
    await apply(nc, topology)
    await api(nc, "CONSUMER.PAUSE.COMMANDS.new_any", {"pause_until": "2999-01-01T00:00:00Z"})
    report = await check(nc, topology)
    assert [str(f) for f in report.findings] == ["COMMANDS/new_any: paused is true, declared false"]
    assert (await apply(nc, topology)).empty


async def test_commits_that_are_gone_are_found(nc: Client, topology: Topology) -> None:
    """A stream whose settings are right now, but from which commits were purged before, is refused."""
    loose = {
        "name": "STATE_g1_00",
        "subjects": ["state.g1.00.>"],
        "discard": "new",
        "storage": "file",
        "num_replicas": 1,
    }
    await api(nc, "STREAM.CREATE.STATE_g1_00", loose)
    js = nc.jetstream()
    for _ in range(3):
        await js.publish("state.g1.00.t.a.r", b"commit")
    await api(nc, "STREAM.PURGE.STATE_g1_00", {"seq": 2})
    await js.delete_msg("STATE_g1_00", 3)
    await apply(nc, topology)
    assert "commits are gone" in str((await check(nc, topology)).refusal())


async def test_sync_is_unproven_without_an_address(nc: Client, topology: Topology) -> None:
    """Only the monitoring address tells; without it nothing is claimed."""
    await apply(nc, topology)
    report = await check(nc, topology)
    assert report.sync.verdict == "unproven" and not report.ok and report.refusal() is None


async def test_a_server_with_default_sync_fails_the_proof(topology: Topology) -> None:
    """A server that acknowledges before it syncs is refuted."""
    async with nats_for_tests(sync_always=False) as server:
        nc = await nats.connect(server.url)
        await apply(nc, topology)
        report = await check(nc, topology, server.monitor_url)
        await nc.close()
    assert report.sync.verdict == "refuted" and not report.ok and "sync_interval" in report.sync.detail


async def test_another_servers_monitoring_address_proves_nothing(
    nc: Client, server: NatsUnderTest, topology: Topology
) -> None:
    """The proof has to come from the server that holds the streams."""
    await apply(nc, topology)
    async with nats_for_tests() as other:
        assert (await check(nc, topology, other.monitor_url)).sync.verdict == "unproven"
        both = f"{other.monitor_url},{server.monitor_url}"
        assert (await check(nc, topology, both)).sync.verdict == "proven"


async def test_a_dead_monitoring_address_proves_nothing(nc: Client, topology: Topology) -> None:
    """No answer is no proof."""
    report = await check(nc, topology, "http://127.0.0.1:9")
    assert report.sync.verdict == "unproven" and "127.0.0.1:9" in report.sync.detail


async def test_a_server_that_is_too_old_is_refused(
    nc: Client, topology: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version floor is checked before anything else."""
    monkeypatch.setattr(server_version, "MINIMUM_VERSION", "99.0.0")
    with pytest.raises(PortMisconfigured, match=r"Waybook needs 99\.0\.0 or newer"):
        await apply(nc, topology)
    report = await check(nc, topology)
    assert [f.field for f in report.breaking] == ["version"]
    assert (await api(nc, "STREAM.NAMES")).get("streams") is None


@asynccontextmanager
async def configured(folder: Path, config: str) -> AsyncIterator[Client]:
    """A connection to a server with a configuration of the test's own."""
    port = free_port()
    file = folder / "server.conf"
    file.write_text(f'listen: "127.0.0.1:{port}"\n{config}')
    process = await asyncio.create_subprocess_exec(
        programs.nats_server(), "-c", str(file), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        client = await nats.connect(
            f"nats://127.0.0.1:{port}", reconnect_time_wait=0.02, max_reconnect_attempts=500, error_cb=silent
        )
        yield client
        await client.close()
    finally:
        process.kill()
        await process.wait()


async def silent(error: Exception) -> None:
    """The client's own log of errors is no part of these tests."""


async def test_a_server_without_jetstream_says_so(topology: Topology, tmp_path: Path) -> None:
    """JetStream switched off is named."""
    async with configured(tmp_path, "") as client:
        with pytest.raises(PortUnavailable, match="JetStream is not enabled"):
            await apply(client, topology)


async def test_missing_permissions_are_named(
    topology: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who may look but not create learns what is forbidden, not only that nobody answers."""
    monkeypatch.setattr("waybook.adapters.nats.topology.server.TIMEOUT_S", 0.3)
    allowed = '["$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.*.*"]'
    users = f"authorization {{ default_permissions: {{ publish: {allowed} }} \n users: [{{user: a, password: b}}] }}\n"
    rest = f'no_auth_user: a\njetstream {{ store_dir: "{tmp_path}" }}\n'
    async with configured(tmp_path, users + rest) as client:
        assert len((await plan(client, topology)).of("create")) == len(NAMES)
        with pytest.raises(PortMisconfigured, match=r"permissions violation for publish to .*js\.api\.stream\.create"):
            await apply(client, topology)


async def test_parameters_reach_the_server(nc: Client, topology: Topology) -> None:
    """Tests shorten the lease and cap a stream; a stream of a higher replica count cannot be made on one server."""
    short = topology.with_parameters(ack_wait_ms=1_000, max_bytes={"STATE_g1_00": 1 << 20})
    await apply(nc, short)
    assert (await check(nc, short)).findings == ()
    assert (await api(nc, "CONSUMER.INFO.COMMANDS.new_any"))["config"]["ack_wait"] == 10**9
    assert (await api(nc, "STREAM.INFO.STATE_g1_00"))["config"]["max_bytes"] == 1 << 20
    with pytest.raises(PortMisconfigured, match="replicas > 1 not supported"):
        await apply(nc, topology.with_parameters(replicas=3))

"""Plan logic without a server."""

import pytest

from waybook.adapters.nats.topology import Plan, load_topology
from waybook.adapters.nats.topology.planning import compare
from waybook.adapters.nats.topology.quantity import show_duration, show_size
from waybook.adapters.nats.topology.server import Stored
from waybook.adapters.nats.topology.settings import Settings, declared_consumers, declared_streams

TOPOLOGY = load_topology()


def plan_for(stream: str, **stored: object) -> Plan:
    """The plan for one stream that is stored with these settings."""
    declared = declared_streams(TOPOLOGY)[stream]
    return compare({stream: declared}, {}, {stream: Stored(config={"name": stream, **declared, **stored})}, {})


def consumer_plan_for(stream: str, name: str, **stored: object) -> Plan:
    """The same for a consumer."""
    key = (stream, name)
    declared = declared_consumers(TOPOLOGY)[key]
    return compare({}, {key: declared}, {}, {key: Stored(config={"durable_name": name, **declared, **stored})})


def test_what_is_absent_is_created() -> None:
    """Everything that the server lacks is created, with the declared settings."""
    streams, consumers = declared_streams(TOPOLOGY), declared_consumers(TOPOLOGY)
    plan = compare(streams, consumers, dict.fromkeys(streams), dict.fromkeys(consumers))
    assert len(plan.of("create")) == len(streams) + len(consumers)
    assert plan.changes[0].wanted["deny_purge"] is True


def test_servers_additions_are_no_difference() -> None:
    """Metadata, placement and defaults that a server adds are not compared."""
    additions: Settings = {"metadata": {"_nats.level": "5"}, "consumer_limits": {}, "placement": {"tags": ["az:1"]}}
    assert plan_for("STATE_g1_00", **additions).empty


def test_a_setting_that_this_version_does_not_know_is_mentioned() -> None:
    """A later server's setting is a harmless difference as long as it is on."""
    plan = plan_for("STATE_g1_00", allow_time_travel=True)
    assert [(d.field, d.breaks) for d in plan.changes[0].differences] == [("allow_time_travel", None)]
    assert plan_for("STATE_g1_00", allow_time_travel=False).empty


@pytest.mark.parametrize(
    ("stream", "settings", "advice"),
    [
        ("STATE_g1_00", {"retention": "workqueue"}, "retention cannot change to or from workqueue"),
        ("STATE_g1_00", {"storage": "memory"}, "storage of a stream cannot be changed"),
        ("STATE_g1_00", {"allow_msg_ttl": True}, "allow_msg_ttl cannot be switched off again"),
        ("STATE_g1_00", {"persist_mode": "async"}, "persist_mode of a stream cannot be changed"),
        ("STATE_g1_00", {"mirror": {"name": "X"}}, "mirror of a stream cannot be changed"),
        ("STATE_g1_00", {"subjects": ["state.g1.00.>", "old.>"]}, "messages on old.> would no longer be found"),
        ("TIMERS", {"deny_delete": True}, "deny_delete cannot be switched off again"),
    ],
)
def test_what_the_server_cannot_take_back_needs_a_person(stream: str, settings: Settings, advice: str) -> None:
    """Such a difference is never tried; the advice says why and what to do."""
    change = plan_for(stream, **settings).changes[0]
    assert change.action == "person" and advice in change.advice and change.wanted == {}


@pytest.mark.parametrize(
    "settings", [{"discard": "old"}, {"max_age": 1}, {"deny_purge": False}, {"max_bytes": 5}, {"subjects": []}]
)
def test_what_can_be_set_right_is_updated(settings: Settings) -> None:
    """An update sends the whole configuration with the declared values."""
    change = plan_for("STATE_g1_00", **settings).changes[0]
    assert change.action == "update"
    assert change.wanted["discard"] == "new" and change.wanted["deny_purge"] is True
    assert change.wanted.get("max_age", 0) == 0 and change.wanted["max_bytes"] == -1


def test_an_update_keeps_what_it_does_not_own() -> None:
    """Placement, republish and copies added by hand survive an update; the server's own metadata is not sent back."""
    placement = {"tags": ["az:1"]}
    metadata = {"_nats.level": "5", "team": "mail"}
    change = plan_for("DEAD", max_age=1, num_replicas=3, placement=placement, metadata=metadata).changes[0]
    assert change.wanted["placement"] == placement and change.wanted["num_replicas"] == 3
    assert change.wanted["metadata"] == {"team": "mail"}


def test_more_copies_than_declared_are_the_same() -> None:
    """Replicas are a floor: fewer break something, more do not."""
    assert plan_for("STATE_g1_00", num_replicas=3).empty
    fewer = compare(
        declared_streams(TOPOLOGY.with_parameters(replicas=3)), {},
        {name: Stored(config=config) for name, config in declared_streams(TOPOLOGY).items()}, {},
    )  # fmt: skip
    assert all(d.breaks for change in fewer.changes for d in change.differences if d.field == "num_replicas")
    assert len(fewer.of("update")) == 9


def test_a_consumers_fixed_settings_need_a_person() -> None:
    """A durable consumer keeps its acknowledgement policy for life."""
    change = consumer_plan_for("STATE_g1_00", "projections", ack_policy="none").changes[0]
    assert change.action == "person" and "delete the consumer" in change.advice


@pytest.mark.parametrize(("pending", "breaks"), [(50_000, False), (-1, False), (1_000, True)])
def test_room_for_outstanding_commands(pending: int, breaks: bool) -> None:
    """More room than declared is harmless, less stalls the queue."""
    difference = consumer_plan_for("COMMANDS", "ctl_any", max_ack_pending=pending).changes[0].differences[0]
    assert bool(difference.breaks) is breaks


def test_quantities_read_as_they_are_written() -> None:
    """The largest unit without a rest."""
    assert [show_duration(n) for n in (0, 120_000_000_000, 250_000_000, 7 * 86_400_000_000_000, 1)] == [
        "none", "2m", "250ms", "7d", "1ns",
    ]  # fmt: skip
    assert [show_size(n) for n in (-1, 0, 512, 65_536, 1 << 30)] == ["unlimited", "0", "512", "64KiB", "1GiB"]

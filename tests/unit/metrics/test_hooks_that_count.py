"""Every kind of details is counted where it belongs, and unknown ones are passed over."""

import subprocess
import sys
from typing import Any, get_args

import msgspec
import pytest
from prometheus_client.metrics_core import Metric

from waybook.adapters.metrics.exposition import Exposition, Process
from waybook.adapters.metrics.projector import ProjectionGauges, ProjectorMetrics
from waybook.adapters.metrics.scheduler import SchedulerGauges, SchedulerMetrics
from waybook.adapters.metrics.source import Source
from waybook.adapters.metrics.walker import WalkerGauges, WalkerMetrics
from waybook.engine.hooks import (
    ApprovalMoved,
    BatchProjected,
    ClaimsLost,
    CommandBuried,
    CommandGiven,
    CommandMoved,
    CommandRefused,
    CommandsTaken,
    CommitStored,
    ConflictMet,
    Details,
    GroupSent,
    ModelCallsUncounted,
    ProjectionRestarted,
    ProjectionState,
    SchedulerState,
    StepEnded,
    StepRemarked,
    TimerHandedOver,
    TimerRearmed,
    TimersArmed,
    WalkerState,
    ignore,
)

TOLD: list[tuple[Details, dict[str, float]]] = [
    (
        CommitStored("inbox", 4, 1500, 0.002),
        {
            'waybook_commits_total{agent="inbox"}': 1,
            'waybook_events_total{agent="inbox"}': 4,
            'waybook_commit_bytes_total{agent="inbox"}': 1500,
            "waybook_append_seconds_sum": 0.002,
            'waybook_append_seconds_bucket{le="0.001"}': 0,
            'waybook_append_seconds_bucket{le="0.0025"}': 1,
        },
    ),
    (ConflictMet("inbox"), {'waybook_append_conflicts_total{agent="inbox"}': 1}),
    (
        StepEnded("inbox", "draft", "completed", 1200),
        {
            'waybook_steps_total{agent="inbox",outcome="completed",step="draft"}': 1,
            'waybook_step_duration_seconds_sum{agent="inbox",outcome="completed",step="draft"}': 1.2,
        },
    ),
    (
        StepEnded("inbox", "draft", "abandoned"),
        {'waybook_steps_total{agent="inbox",outcome="abandoned",step="draft"}': 1},
    ),
    (GroupSent(40), {"waybook_group_size_commits_sum": 40, 'waybook_group_size_commits_bucket{le="40.0"}': 1}),
    (
        CommandsTaken("new_any", 16, 2),
        {
            'waybook_deliveries_total{consumer="new_any"}': 16,
            'waybook_redeliveries_total{consumer="new_any"}': 2,
        },
    ),
    (ApprovalMoved("inbox", "expired"), {'waybook_approvals_total{agent="inbox",step="expired"}': 1}),
    (
        ModelCallsUncounted("inbox", "draft", 2),
        {'waybook_model_calls_uncounted_total{agent="inbox",step="draft"}': 2},
    ),
    (
        StepRemarked("inbox", "route", "gate:loop"),
        {'waybook_step_remarks_total{agent="inbox",remark="gate:loop",step="route"}': 1},
    ),
    (CommandRefused("stale"), {'waybook_commands_refused_total{reason="stale"}': 1}),
    (CommandBuried("convicted"), {'waybook_dead_letters_total{reason="convicted"}': 1}),
    (CommandMoved(), {"waybook_commands_moved_total": 1}),
    (ClaimsLost(), {"waybook_claims_lost_total": 1}),
    (
        BatchProjected("S", 300, 0.03),
        {
            'waybook_projection_commits_total{stream="S"}': 300,
            'waybook_projection_batch_commits_sum{stream="S"}': 300,
            'waybook_projection_batch_seconds_sum{stream="S"}': 0.03,
        },
    ),
    (ProjectionRestarted("S"), {'waybook_projection_restarts_total{stream="S"}': 1}),
    (TimersArmed("retry"), {'waybook_timers_armed_total{class="retry"}': 1}),
    (
        TimerHandedOver("retry", 0.2),
        {
            'waybook_timer_late_seconds_sum{class="retry"}': 0.2,
            'waybook_timer_late_seconds_bucket{class="retry",le="0.1"}': 0,
            'waybook_timer_late_seconds_bucket{class="retry",le="0.25"}': 1,
        },
    ),
    (TimerRearmed("send"), {'waybook_timers_rearmed_total{class="send"}': 1}),
    (CommandGiven("timer"), {'waybook_commands_given_total{verb="timer"}': 1}),
]


async def read(*sources: Source) -> dict[str, float]:
    """Series and values of a plain answer."""
    body, content_type = await Exposition(sources).render("")
    assert content_type.startswith("text/plain")
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.parametrize(("details", "counted"), TOLD, ids=[type(details).__name__ for details, _ in TOLD])
async def test_an_occurrence_is_counted(details: Details, counted: dict[str, float]) -> None:
    walker, projector = WalkerMetrics({"inbox": ["draft"]}, ["new_any"]), ProjectorMetrics(["S"])
    scheduler = SchedulerMetrics()
    before = await read(walker, projector, scheduler)
    walker(details)
    projector(details)
    scheduler(details)
    after = await read(walker, projector, scheduler)
    assert {name: after[name] - before.get(name, 0) for name in counted} == pytest.approx(counted)


def test_every_kind_of_details_is_tested_and_frozen() -> None:
    """A new kind needs a place in the metrics, and an object that many see must not change."""
    assert {type(details) for details, _ in TOLD} == set(get_args(Details))
    for details, _ in TOLD:
        for field in msgspec.structs.fields(details):
            with pytest.raises(AttributeError):
                setattr(details, field.name, None)
        ignore(details)


async def test_a_kind_from_a_later_version_is_passed_over() -> None:
    class Unheard(msgspec.Struct):
        pass

    later: Any = Unheard()
    WalkerMetrics()(later)
    ProjectorMetrics(["S"])(later)
    SchedulerMetrics()(later)


async def test_what_a_walker_carries_is_told_before_it_happens() -> None:
    """`increase` needs a zero before the first failure."""
    told = await read(WalkerMetrics({"inbox": ["draft", "route"]}, ["new_any"]))
    outcomes = ("completed", "failed", "exhausted", "abandoned", "released")
    for step in ("draft", "route"):
        for outcome in outcomes:
            assert told[f'waybook_steps_total{{agent="inbox",outcome="{outcome}",step="{step}"}}'] == 0
    assert told['waybook_redeliveries_total{consumer="new_any"}'] == 0
    assert told['waybook_dead_letters_total{reason="undelivered"}'] == 0


async def test_how_a_walker_stands_is_looked_up_at_every_scrape() -> None:
    state = WalkerState(True, 3, {"new_any": 64}, {"new_any": 2})
    gauges = WalkerGauges(lambda: state, lambda: True)
    assert await read(gauges) == {
        "waybook_walker_healthy": 1,
        "waybook_nats_connected": 1,
        "waybook_runs_in_memory": 3,
        'waybook_slots{consumer="new_any"}': 64,
        'waybook_slots_taken{consumer="new_any"}': 2,
    }
    state = WalkerState(False, 0, {}, {})
    assert (await read(gauges))["waybook_walker_healthy"] == 0


async def test_how_a_scheduler_stands_is_looked_up_at_every_scrape() -> None:
    states = [SchedulerState(True), SchedulerState(False)]
    gauges = SchedulerGauges(lambda: states.pop(0))
    assert await read(gauges) == {"waybook_scheduler_healthy": 1}
    assert await read(gauges) == {"waybook_scheduler_healthy": 0}


async def test_what_is_not_known_of_a_projection_is_left_out() -> None:
    """No number is better than a wrong one: a reader on standby has no lag of its own."""
    states = [ProjectionState("A", True, True, 7, 2, 0.5), ProjectionState("B", True, False)]

    async def look() -> list[ProjectionState]:
        return states

    told = await read(ProjectionGauges(look))
    assert told['waybook_projection_lag_seconds{stream="A"}'] == 0.5
    assert {name for name in told if '"B"' in name} == {
        'waybook_projector_healthy{stream="B"}',
        'waybook_projector_active{stream="B"}',
    }


async def test_every_name_has_the_prefix_and_no_label_takes_free_text() -> None:
    """Names of metrics begin with waybook_; labels are of a short list."""
    families: list[Metric] = [
        *await WalkerMetrics({"a": ["s"]}, ["c"]).families(),
        *await ProjectorMetrics("S").families(),
        *await SchedulerMetrics().families(),
    ]
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert all(family.name.startswith("waybook_") and family.documentation.endswith(".") for family in families)
    assert labels == {"agent", "step", "outcome", "consumer", "reason", "stream", "le", "class", "verb"}


async def test_a_reader_that_asks_for_openmetrics_gets_it() -> None:
    body, content_type = await Exposition([WalkerMetrics()]).render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text") and body.endswith(b"# EOF\n")


async def test_a_process_tells_its_version_and_its_memory() -> None:
    told = await read(Process("walker"))
    [build] = [name for name in told if name.startswith("waybook_build_info")]
    assert 'service="walker"' in build and told["process_resident_memory_bytes"] > 1e6


def test_nothing_loads_the_metrics_library_unless_somebody_asks_for_metrics() -> None:
    """Command line and projector start without it."""
    script = "import sys, waybook.cli, waybook.projections.__main__; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0

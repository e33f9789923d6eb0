"""Metrics of a living installation: what the dashboard, the alerts and the guide name is really told."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.integration.deployment import service
from tests.integration.promql import Selector, read
from tests.integration.scraping import Scrape, addresses, scrape, until
from tests.integration.shell import SAMPLES, Shell

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.testing.servers import directory_for_tests

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "overview.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
GUIDE = ROOT / "docs" / "operating.md"
OF_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds when it reads."""


class Live:
    """What the walker and the projector of a running `waybook up` tell after it has walked the samples."""

    def __init__(self, walker: Scrape, projector: Scrape) -> None:
        self.walker = walker
        self.projector = projector

    @property
    def families(self) -> set[str]:
        """Names as a query writes them, histograms without their suffix."""
        return {n + ("_total" if f.type == "counter" else "") for s in self for n, f in s.families.items()}

    def __iter__(self) -> Iterator[Scrape]:
        return iter((self.walker, self.projector))

    def find(self, selector: Selector) -> bool:
        """Whether a series is told that the selector picks."""
        return any(
            sample.name == selector.metric and all(_holds(sample.labels, *m) for m in selector.matchers)
            for one in self
            for sample in one.samples
        )


def _holds(labels: dict[str, str], label: str, operator: str, value: str) -> bool:
    if label in OF_PROMETHEUS:
        return True
    own = labels.get(label, "")
    same = re.fullmatch(value, own) is not None if operator.endswith("~") else own == value
    return same != operator.startswith("!")


@pytest.fixture(scope="module")
def live(postgres_template: Path) -> Iterator[Live]:
    """`waybook up` with its defaults, the samples taken in beside it."""
    with asyncio.Runner() as runner:
        directory = directory_for_tests(postgres_template)
        shell = Shell(runner.run(directory.__aenter__()))
        try:
            with service(shell.start("up"), "walking") as said:
                walker, projector = addresses(said)
                assert "(walker)" in said[-3] and "(projector)" in said[-2]
                taken = shell.json("ingest", str(SAMPLES))["taken"]
                until(lambda: scrape(walker).sum("waybook_deliveries_total", consumer="new_any") >= len(taken))
                until(lambda: scrape(walker).sum("waybook_slots_taken") == 0)
                until(lambda: scrape(walker).sum("waybook_commands_held") == 0)  # read a moment ago
                until(lambda: scrape(projector).sum("waybook_projection_lag_events") == 0)
                yield Live(scrape(walker), scrape(projector))
        finally:
            runner.run(directory.__aexit__(None, None, None))


def test_what_was_walked_is_counted(live: Live) -> None:
    """Every sample is one delivery, every step of every draft one attempt, every commit one of the projector's."""
    mails = sum(1 for path in SAMPLES.iterdir() if path.suffix == ".eml")
    walker, projector = live.walker, live.projector
    assert walker.sum("waybook_deliveries_total") == mails
    assert walker.sum("waybook_redeliveries_total") == 0
    drafted = walker.sum("waybook_steps_total", step="draft", outcome="completed")
    assert 0 < drafted < mails
    assert walker.sum("waybook_step_duration_seconds_count", step="draft", outcome="completed") == drafted
    assert walker.sum("waybook_steps_total", outcome="failed") == 0
    commits = walker.sum("waybook_commits_total")
    assert commits == walker.sum("waybook_append_seconds_count") == projector.sum("waybook_projection_commits_total")
    conflicts = walker.sum("waybook_append_conflicts_total")
    assert walker.sum("waybook_group_size_commits_sum") >= commits
    assert walker.sum("waybook_group_size_commits_sum") <= (commits + conflicts) * 3
    assert projector.sum("waybook_projection_position") == commits
    assert walker.sum("waybook_commands_waiting") == walker.sum("waybook_commands_held") == 0
    assert walker.sum("waybook_walker_healthy") == walker.sum("waybook_jetstream_answers") == 1
    assert projector.sum("waybook_projector_active") == projector.sum("waybook_projector_healthy") == 1
    assert walker.sum("process_resident_memory_bytes") != projector.sum("process_resident_memory_bytes")


def _dashboard_queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def _alert_queries() -> list[str]:
    rules = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule["expr"] for group in rules for rule in group["rules"]]


@pytest.mark.parametrize("query", [*_dashboard_queries(), *_alert_queries()])
def test_every_query_finds_its_metrics(live: Live, query: str) -> None:
    """Each metric is told, with a series for its matchers, and carries the labels that the query groups by."""
    asked = read(query)
    selectors = [s for s in asked.selectors if s.metric != "up"]
    assert selectors or query.startswith("up{")
    labels = set(OF_PROMETHEUS)
    for selector in selectors:
        assert live.find(selector), selector
        labels |= {label for one in live for label in one.labels(selector.metric)}
    assert asked.grouping <= labels


def test_the_dashboard_shows_everything_that_is_told(live: Live) -> None:
    """No metric of ours is told for nobody; the position and the build are for people who look into the table."""
    shown = {_family(s.metric) for query in _dashboard_queries() for s in read(query).selectors}
    ours = {name for name in live.families if name.startswith("waybook_")}
    assert ours - shown == {"waybook_projection_position", "waybook_build_info"}


def test_the_guide_names_every_metric_and_no_other(live: Live) -> None:
    """The tables of the guide are the metrics that are told, with their types and labels."""
    rows = re.findall(r"^\| `(waybook_\w+)` \| (\w+) \| ([\w, ]*?) ?\|", GUIDE.read_text(), re.MULTILINE)
    told = {}
    for one in live:
        for name, family in one.families.items():
            full = name + ("_total" if family.type == "counter" else "")
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            told[full] = (family.type, labels)
    told = {name: how for name, how in told.items() if name.startswith("waybook_") and name != "waybook_build_info"}
    assert {name: (kind, set(filter(None, labels.split(", ")))) for name, kind, labels in rows} == told


def test_the_guide_explains_every_alert() -> None:
    """The table of alerts in the guide is that of the rules."""
    named = re.findall(r"^\| `(Waybook\w+)` \|", GUIDE.read_text(), re.MULTILINE)
    rules = yaml.safe_load(ALERTS.read_text())["groups"]
    assert sorted(named) == sorted(rule["alert"] for group in rules for rule in group["rules"])


def test_prometheus_reads_the_ports_that_the_guide_starts_services_on() -> None:
    """A scrape configuration beside the alerts, for the ports of all services."""
    configuration = yaml.safe_load((ALERTS.parent / "prometheus.yml").read_text())
    assert configuration["rule_files"] == [ALERTS.name]
    targets = {s["job_name"]: s["static_configs"][0]["targets"] for s in configuration["scrape_configs"]}
    assert targets == {
        "waybook-walker": ["127.0.0.1:9477"],
        "waybook-projector": ["127.0.0.1:9478"],
        "waybook-scheduler": ["127.0.0.1:9479"],
    }
    guide = GUIDE.read_text()
    for service_, port in (("walker", 9477), ("projector", 9478), ("scheduler", 9479)):
        assert f"serve {service_} --metrics-port {port}" in guide


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    """`up` on a port that another program has ends at once, with the way out; -1 asks for no metrics."""
    shell = Shell(DataDirectory(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words in (("up", "--metrics-port", port), ("serve", "projector", "--metrics-port", port)):
            servers = {"WAYBOOK_NATS_URL": "nats://127.0.0.1:1", "WAYBOOK_DATABASE_URL": "postgresql://127.0.0.1:1/x"}
            said = shell.run(*words, code=1, **servers)
            assert f"127.0.0.1:{port}" in said and "--metrics-port" in said and "Traceback" not in said
    assert not (tmp_path / "data").exists()
    assert "cannot be -2" in shell.run("up", "--metrics-port=-2", code=2)


def _family(metric: str) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        if metric.endswith(suffix):
            return metric.removesuffix(suffix)
    return metric

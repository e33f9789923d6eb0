"""Reading a topology file: every mistake is named with its line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from waybook.adapters.nats.topology import Topology, TopologyFileError, load_topology
from waybook.adapters.nats.topology.file import default_file, parse_topology
from waybook.adapters.nats.topology.rules import overlap
from waybook.events.errors import InvalidInput

TEXT = default_file().read_text(encoding="utf-8")


def line_of(text: str, part: str) -> int:
    """Number of the first line that holds `part`."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def problems(old: str, new: str) -> list[tuple[int, str]]:
    """The problems of the project's own file after a replacement."""
    assert old in TEXT
    with pytest.raises(TopologyFileError) as caught:
        parse_topology(TEXT.replace(old, new, 1), "streams.yaml")
    return [(problem.line, problem.text) for problem in caught.value.problems]


def test_the_projects_own_file_declares_the_plan() -> None:
    """State is untouchable, commands are a queue with three disjoint consumers, timers have schedules."""
    topology = load_topology()
    state, commands = topology.streams["STATE_g1_00"], topology.streams["COMMANDS"]
    assert state.deny_delete and state.deny_purge and state.discard == "new" and state.max_age_ms == 0
    assert commands.retention == "workqueue" and commands.duplicate_window_ms == 120_000
    assert {name: c.filter for name, c in commands.consumers.items()} == {
        "ctl_any": "cmd.ctl.any.>",
        "new_any": "cmd.new.any.>",
        "step_any": "cmd.step.any.>",
    }
    assert all(
        (c.ack_wait_ms, c.max_ack_pending, c.max_deliver) == (60_000, 20_000, -1) for c in commands.consumers.values()
    )
    assert topology.streams["TIMERS"].allow_msg_schedules
    assert list(topology.buckets.key_value) == ["snapshots"] and list(topology.buckets.objects) == ["artifacts"]


def test_an_unknown_key_names_its_line_and_the_allowed_keys() -> None:
    """The message says where, what, and what would be right."""
    ((line, text),) = problems("    deny_purge: true", "    deny_purges: true")[:1]
    assert line == line_of(TEXT, "deny_purge: true")
    assert text.startswith("unknown key `deny_purges` in streams.STATE_g1_00; allowed: subjects, ")
    assert "deny_purge," in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    retention: limits", "    retention: forever", "`retention` in streams.STATE_g1_00: Invalid enum value 'forever'"),
        ("    allow_atomic: true # group", "    allow_atomic: 1 # group", "`allow_atomic` in streams.STATE_g1_00: Expected `bool`, got `int`"),
        ("max_age: 3d", "max_age: 3 days", "`max_age` in streams.TRACE: '3 days' is not a duration; write it like"),
        ("max_age: 3d", "max_age: 3", "`max_age` in streams.TRACE: 3 is not a duration; write it like"),
        ("max_bytes: 256MiB", "max_bytes: 256MB", "`max_bytes` in streams.TRACE: '256MB' is not a size; write it like"),
        ("max_ack_pending: 20000", "max_ack_pending: 0", "in streams.STATE_g1_00.consumers.projections: 0 is not a number"),
        ("max_deliver: unlimited", "max_deliver: true", "True is not a number above 0 or `unlimited`"),
        ("subjects: [cmd.>]", "subjects: cmd.>", "`subjects` in streams.COMMANDS: Expected `array`, got `str`"),
        ("format: 1", "format: 2", "`format` in the file: Invalid enum value 2"),
    ],
)  # fmt: skip
def test_a_wrong_value_names_its_line(old: str, new: str, expected: str) -> None:
    """Type, enum and unit errors point at the value."""
    line, text = problems(old, new)[0]
    assert line == line_of(TEXT, old) and expected in text


def test_a_missing_key_is_named() -> None:
    """A stream without subjects says so."""
    found = problems("    subjects: [cmd.>]\n", "")
    assert found == [(line_of(TEXT, "  COMMANDS:") + 1, "streams.COMMANDS lacks the key `subjects`")]


def test_a_key_given_twice_is_a_mistake() -> None:
    """YAML would silently take the last one."""
    ((line, text),) = problems("    deny_purge: true\n", "    deny_purge: true\n    deny_purge: false\n")[:1]
    assert (line, text) == (line_of(TEXT, "deny_purge: true") + 1, "streams.STATE_g1_00 has the key `deny_purge` twice")


def test_all_mistakes_are_reported_at_once() -> None:
    """Nobody mends a file one message at a time."""
    assert (
        len(
            problems(
                "    retention: limits\n    storage: file", "    retention: never\n    storage: tape\n    depth: 3"
            )
        )
        == 3
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    deny_purge: true", "    deny_purge: false", "STATE_g1_00: deny_purge must be true, otherwise the stream can be purged"),
        ("    allow_msg_schedules: false", "    allow_msg_schedules: true", "must be false, otherwise schedules silently switch deny_purge off"),
        ("    duplicate_window: 2m", "    max_age: 7d", "COMMANDS: max_age must be left out, otherwise messages vanish with age"),
        ("subjects: [state.g1.00.>]", "subjects: [state.g1.>]", "STATE_g1_00: subjects must be [state.g1.00.>], as its name says"),
        ("subjects: [dead.>]", "subjects: [dead.>, cmd.new.>]", "DEAD: cmd.new.> overlaps cmd.> of COMMANDS"),
        ("filter_subject: cmd.new.any.>", "filter_subject: cmd.*.any.>", "COMMANDS/new_any: cmd.*.any.> overlaps cmd.ctl.any.> of ctl_any"),
        ("        description: Read models, one active reader", "        filter_subject: state.g1.00.t.>", "projections: filter_subject must be absent"),
    ],
)  # fmt: skip
def test_a_file_that_breaks_an_invariant_is_refused(old: str, new: str, expected: str) -> None:
    """The invariants hold for a user's own file too; the line is the setting's."""
    line, text = problems(old, new)[0]
    assert expected in text
    assert line == line_of(TEXT, old)


def test_a_missing_stream_is_named() -> None:
    """The runtime needs every stream."""
    assert problems("  TRACE:", "  TRACES:") == [(line_of(TEXT, "streams:"), "the stream TRACE is missing")]


@pytest.mark.parametrize(
    ("text", "expected"), [("", ":1: the file is empty"), ("a: [", ":2: not YAML"), ("- 1", "must hold keys")]
)
def test_what_is_no_topology_at_all_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """Empty files, broken YAML and lists are refused with a line."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(TopologyFileError, match=expected):
        load_topology(file)


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir(), lambda p: p.write_bytes(b"\xff\xfe")])
def test_an_unreadable_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A file that is absent, a folder, or no text is named."""
    file = tmp_path / "mine.yaml"
    make(file)
    with pytest.raises(InvalidInput, match=r"cannot read the topology file .*mine\.yaml"):
        load_topology(file)


def test_parameters_change_only_what_they_name() -> None:
    """Overrides for tests and production leave the declaration as it is."""
    topology = load_topology()
    changed = topology.with_parameters(replicas=3, ack_wait_ms=1_000, max_bytes={"COMMANDS": 4096})
    assert {stream.replicas for stream in changed.streams.values()} == {3}
    assert changed.streams["COMMANDS"].consumers["ctl_any"].ack_wait_ms == 1_000
    assert changed.streams["STATE_g1_00"].consumers["projections"].ack_wait_ms == 60_000
    assert changed.streams["COMMANDS"].max_bytes == 4096 and changed.streams["DEAD"].max_bytes == -1
    assert topology == load_topology()
    assert topology.with_parameters() == topology


@pytest.mark.parametrize("use", [lambda t: t.only("NONE"), lambda t: t.with_parameters(max_bytes={"NONE": 1})])
def test_a_parameter_for_what_is_not_declared_is_refused(use: Callable[[Topology], Topology]) -> None:
    """A typo in a test's override is an error, not a no-op."""
    with pytest.raises(InvalidInput, match="NONE"):
        use(load_topology())


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a.>", "a.b", True), ("a.>", "a", False), ("a.*", "a.b", True), ("a.*", "a.b.c", False), ("a.b", "a.c", False),
        ("audit.in.*.>", "audit.*.log", False), ("audit.in.>", "audit.*.log", True), (">", "x", True),
    ],
)  # fmt: skip
def test_overlap(one: str, other: str, expected: bool) -> None:
    """Two patterns overlap when one subject matches both."""
    assert overlap(one, other) is expected and overlap(other, one) is expected

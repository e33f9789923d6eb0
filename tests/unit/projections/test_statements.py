"""SQL files and migrations: named, described, numbered."""

from importlib import resources

import pytest

from waybook.projections.migrate import migrations
from waybook.projections.statements import identifier, placed, statements

FILES = (
    "inbound_messages",
    "agent_actions",
    "approvals",
    "timers",
    "operations",
    "checkpoint",
    "generations",
    "views",
    "queries",
    "verify",
)


@pytest.mark.parametrize("file", FILES)
def test_every_statement_is_described(file: str) -> None:
    found = statements(file)
    assert found
    for name, statement in found.items():
        assert statement.startswith("-- "), name


def test_no_sql_file_is_forgotten() -> None:
    names = {f.name for f in resources.files("waybook.projections").iterdir() if f.name.endswith(".sql")}
    assert names == {f"{file}.sql" for file in FILES}


@pytest.mark.parametrize("series", ["front", "tables"])
def test_migrations_are_numbered_without_holes(series: str) -> None:
    numbers = [number for number, _, _ in migrations(series)]  # type: ignore[arg-type]
    assert numbers == list(range(1, len(numbers) + 1))


def test_schemas_are_quoted() -> None:
    assert identifier('a"b') == '"a""b"'
    assert placed("{front}.x {tables}.y", front="f", tables="t") == '"f".x "t".y'

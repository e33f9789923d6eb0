"""SQL files and migrations: named, described, numbered."""

from importlib import resources
from types import ModuleType

import pytest

from waybook.projections import agent_actions, approvals, inbound_messages
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


@pytest.mark.parametrize(
    ("statement", "model"),
    [
        ("insert_messages", inbound_messages),
        ("insert_actions", agent_actions),
        ("insert_approvals", approvals),
    ],
)
def test_new_rows_are_copied_into_the_columns_that_their_statement_fills(statement: str, model: ModuleType) -> None:
    sql = statements(model.NAME)[statement]
    names = sql.partition("(")[2].partition(")")[0]
    assert tuple(name.strip() for name in names.split(",")) == model.COLUMNS

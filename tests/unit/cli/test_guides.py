"""What guides must say."""

import re
from pathlib import Path

import msgspec
import pytest

from waybook.services.bootstrap.settings import Settings

ROOT = Path(__file__).parents[3]
VARIABLE = re.compile(r"\bWAYBOOK_[A-Z_]+\b")
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", [field.name for field in msgspec.structs.fields(Settings)])
def test_every_setting_stands_in_a_guide(name: str) -> None:
    """By the name of its variable, or as the table of the file that it is."""
    named = re.compile(rf"\bWAYBOOK_{name.upper()}\b|^\[{name}[.\]]", re.MULTILINE)
    assert any(named.search(guide.read_text()) for guide in GUIDES)


def test_every_variable_of_a_guide_is_read_by_the_program() -> None:
    """Those of the test suite and of passwords in examples aside."""
    known = {f"WAYBOOK_{field.name.upper()}" for field in msgspec.structs.fields(Settings)}
    for source in (ROOT / "services").rglob("*.py"):
        known.update(VARIABLE.findall(source.read_text()))
    named = {name for guide in GUIDES for name in VARIABLE.findall(guide.read_text())}
    assert {
        n for n in named - known if not re.match(r"WAYBOOK_(?:TEST|NATS_[A-Z]+_PASSWORD|CONTAINER|CASES|SOAK)", n)
    } == set()


def test_the_guide_of_operators_names_the_sync_setting_and_the_risk_of_the_default() -> None:
    """Whoever brings a server of their own must read it."""
    guide = " ".join((ROOT / "docs" / "operating.md").read_text().split())
    assert (
        "`sync_interval: always`" in guide and "default syncs every two minutes" in guide and "loses its power" in guide
    )

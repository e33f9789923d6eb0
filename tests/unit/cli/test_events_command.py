"""`waybook events schema`: the contract for other people's programs."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from typer.testing import CliRunner, Result

from waybook.cli.events import events_app


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(events_app, ["schema", *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


def test_without_options_it_lists_the_types() -> None:
    result = invoke()
    assert result.exit_code == 0
    for word in ("Commit", "StepBegan", "MailReceived", "engine event"):
        assert word in result.stdout


def test_json_is_one_schema_of_everything() -> None:
    document = json.loads(invoke("--json").stdout)
    assert {"Commit", "Command", "Answer", "StepBegan", "MailReceived"} <= document["$defs"].keys()
    assert jsonschema_rs.meta.is_valid(document)


def test_one_type_is_printed_as_a_schema_of_its_own() -> None:
    document = json.loads(invoke("--type", "TimerFired").stdout)
    assert list(document["$defs"]) == ["TimerFired"]


def test_files_are_written_one_for_each_type_and_one_for_all(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "schemas"
    files = json.loads(invoke("--out", str(folder), "--json").stdout)["files"]
    assert {Path(file).name for file in files} == {file.name for file in folder.iterdir()}
    assert {"waybook-events.json", "StepBegan.json", "MailReceived.json"} <= {file.name for file in folder.iterdir()}
    assert jsonschema_rs.meta.is_valid(json.loads((folder / "StepBegan.json").read_text()))


def test_an_unknown_type_is_wrong_usage() -> None:
    result = invoke("--type", "StepBegun")
    assert result.exit_code == 2
    assert "StepBegun" in result.stderr


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_an_error_with_the_way_out(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    result = invoke("--out", str(tmp_path / place))
    assert result.exit_code == 1
    assert "--out" in result.stderr

"""Files and objects: whole or not at all, found by name and bytes, never after the deadline."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.contract.effects.calls import call, in_time, too_late

from waybook.adapters.effects.files import FileWrite
from waybook.adapters.effects.objects import ObjectWrite
from waybook.adapters.memory.objects import MemoryObjects
from waybook.agents.effects import DeadlinePassed, Done, EffectCall, NotDone, NotThere, Unsure


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def named(name: str) -> EffectCall:
    params = {"name": name, "base64": base64.b64encode(b"bytes").decode()}
    return msgspec.structs.replace(call(), params=params)


async def test_a_file_is_there_with_all_its_bytes_and_is_found(tmp_path: Path) -> None:
    adapter = FileWrite(tmp_path)
    asked = call(path="reports/a.txt", text="grüße")
    assert await adapter.find(asked) == NotThere()
    made = await adapter.call(asked, in_time())
    assert isinstance(made, Done) and made.evidence["bytes"] == 7
    assert (tmp_path / "reports/a.txt").read_text() == "grüße"
    assert await adapter.find(asked) == made
    assert names(tmp_path / "reports") == ["a.txt"]


async def test_other_bytes_under_that_name_are_not_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("older")
    adapter = FileWrite(tmp_path)
    assert await adapter.find(call(path="a", text="newer")) == NotThere()
    assert isinstance(await adapter.call(call(path="a", text="newer"), in_time()), Done)
    assert (tmp_path / "a").read_text() == "newer"


async def test_nothing_is_written_after_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(DeadlinePassed):
        await FileWrite(tmp_path).call(call(path="a", text="x"), too_late())
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "params",
    [
        {"path": "../out", "text": "x"},
        {"path": "/etc/out", "text": "x"},
        {"path": ".", "text": "x"},
        {"path": "a"},
        {"path": "a", "text": "x", "base64": "eA=="},
        {"path": "a", "base64": "?"},
        {"path": "a", "artifact": "some"},
        {"path": 3, "text": "x"},
    ],
)
async def test_what_cannot_be_written_surely_was_not(tmp_path: Path, params: dict[str, Any]) -> None:
    """Trying again cannot help."""
    folder = tmp_path / "in"
    folder.mkdir()
    answer = await FileWrite(folder).call(call(**params), in_time())
    assert isinstance(answer, NotDone) and not answer.retryable
    assert (names(folder), names(tmp_path)) == ([], ["in"])


async def test_a_folder_in_the_way_is_a_failure_that_may_pass(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    answer = await FileWrite(tmp_path).call(call(path="a", text="x"), in_time())
    assert isinstance(answer, NotDone) and answer.retryable


async def test_content_comes_from_the_bucket_by_its_digest(tmp_path: Path) -> None:
    """The bytes that were approved are those that are written."""
    objects = MemoryObjects()
    await objects.put("report", b"\x00\x01")
    digest = hashlib.sha256(b"\x00\x01").hexdigest()
    adapter = FileWrite(tmp_path, objects)
    assert isinstance(await adapter.call(call(path="r", artifact="report", sha256=digest), in_time()), Done)
    await objects.put("report", b"changed")
    answer = await adapter.call(call(path="s", artifact="report", sha256=digest), in_time())
    assert isinstance(answer, NotDone) and (tmp_path / "r").read_bytes() == b"\x00\x01"


async def test_undoing_removes_the_file_unless_somebody_changed_it(tmp_path: Path) -> None:
    adapter = FileWrite(tmp_path)
    params = {"path": "a", "text": "x"}
    await adapter.call(call(**params), in_time())
    undoing = call("undo:x", undoes="1:s:1.0/x/0", **params)
    assert await adapter.find(undoing) == NotThere()
    assert await adapter.undo(undoing, {}, in_time()) == Done()
    assert await adapter.find(undoing) == Done() and await adapter.undo(undoing, {}, in_time()) == Done()
    (tmp_path / "a").write_text("by hand")
    answer = await adapter.undo(undoing, {}, in_time())
    assert isinstance(answer, NotDone) and (tmp_path / "a").read_text() == "by hand"


async def test_an_object_is_written_and_found_and_kept() -> None:
    objects = MemoryObjects()
    adapter = ObjectWrite(objects)
    asked = named("reports/1")
    assert await adapter.find(asked) == NotThere()
    made = await adapter.call(asked, in_time())
    assert isinstance(made, Done) and await objects.get("reports/1") == b"bytes"
    assert await adapter.find(asked) == made
    assert isinstance(await adapter.undo(asked, {}, in_time()), NotDone)


async def test_an_object_is_not_written_late_nor_under_the_engines_names() -> None:
    adapter = ObjectWrite(MemoryObjects())
    with pytest.raises(DeadlinePassed):
        await adapter.call(named("a"), too_late())
    assert isinstance(await adapter.call(named("effects/t/a"), in_time()), NotDone)
    assert isinstance(await adapter.find(named("effects/t/a")), Unsure)

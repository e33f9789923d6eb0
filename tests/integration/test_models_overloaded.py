"""Mails while the model's side is overloaded, for a while and for ever."""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.models.model_service import ModelService, Said, refused
from tests.integration.models_served import role_of, served, well_behaved
from tests.integration.shell import WITHIN_S, Quick

from waybook.adapters.embedded.data_directory import DataDirectory

MAILS = 10
OVERLOADED = refused(529, "overloaded")


@pytest.fixture
def shell(data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> Quick:
    monkeypatch.setenv("WAYBOOK_RETRY_GRID_S", "1")
    return Quick(data_directory)


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    path = tmp_path / "mails.jsonl"
    lines = [
        json.dumps({"from": f"c{n}@customer.example", "subject": f"Parcel {n}", "text": f"Where is parcel {n}?"})
        for n in range(MAILS)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def walked(shell: Quick, mails: Path, answer: Callable[[dict[str, Any]], Said], status: str) -> list[dict[str, Any]]:
    """The messages when all stand in `status`, and wait for nothing but a person; some of them with their `actions`."""
    service = ModelService(answer_to=answer)
    with served(service):
        settings = mails.parent / "waybook.toml"
        settings.write_text(
            f'model = "openai"\nmodel_url = "{service.url}"\nmodel_name = "small"\n'
            f'[models.roles.guard]\nname = "watchful"\n[replies]\nunattended = true\nshadow = false\nthreshold = 0.0\n',
            encoding="utf-8",
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WAYBOOK_CONFIG", str(settings))
            again = Quick(shell.directory)
            with again.up():
                again.run("ingest", str(mails))
                deadline = time.monotonic() + WITHIN_S
                while True:
                    rows: list[dict[str, Any]] = again.json("messages")
                    if len(rows) == MAILS and all((r["status"], r["hold"]) == (status, "waiting") for r in rows):
                        some = [{**row, "actions": again.json("actions", row["run"])} for row in rows[:3]]
                        return [*some, *rows[3:]]
                    assert time.monotonic() < deadline, [(r["status"], r["hold"], r["error_message"]) for r in rows]
                    time.sleep(0.2)


def test_an_overload_of_a_while_costs_attempts_and_no_mail(shell: Quick, mails: Path) -> None:
    """Each mail fails once, as a failure and not as an answer; all come to their draft. Where the guard was overloaded,
    the mail is drafted all the same, says so, and waits for a person though replies may leave unattended."""
    asked: Counter[str] = Counter()

    def overloaded(body: dict[str, Any]) -> Said:
        role = role_of(body)
        asked[role] += 1
        return OVERLOADED if role == "guard" or (role == "classify" and asked[role] <= MAILS) else well_behaved(body)

    for row in walked(shell, mails, overloaded, "draft_ready"):
        assert row["security_flags"]["guard_unavailable"] and row["draft_subject"]
        assert (row["agent_decision"]["gate"], row["agent_decision"]["reason"]) == ("guard", "the guard did not answer")
        attempts = [a["status"] for a in row.get("actions", ()) if a["step"] == "classify"]
        assert attempts[-1:] in ([], ["completed"]) and len(attempts) <= 3
    assert MAILS < asked["classify"] <= 3 * MAILS and asked["draft"] == MAILS


def test_an_overload_without_end_parks_every_mail_with_its_reason(shell: Quick, mails: Path) -> None:
    """Three attempts each and no more; nothing is lost, nothing is drafted, and the model is left in peace."""
    asked: Counter[str] = Counter()

    def overloaded(body: dict[str, Any]) -> Said:
        asked[role_of(body)] += 1
        return OVERLOADED if role_of(body) == "classify" else well_behaved(body)

    for row in walked(shell, mails, overloaded, "failed"):
        assert "529" in row["error_message"] and row["hold_reason"] == "exhausted"
        if "actions" in row:
            failed = [a for a in row["actions"] if a["step"] == "classify"]
            assert [(a["status"], a["retry_count"]) for a in failed] == [("failed", n) for n in (1, 2, 3)]
    assert asked["classify"] == 3 * MAILS and asked["draft"] == 0

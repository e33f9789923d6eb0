"""The command line on real servers, as a user runs it: a process of its own, but where a start of Python says nothing."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.shell import SAMPLES, WITHIN_S, Quick, Shell

from waybook.adapters.embedded.data_directory import DataDirectory


@pytest.fixture
def shell(data_directory: DataDirectory) -> Shell:
    return Shell(data_directory)


@pytest.fixture
def quick(data_directory: DataDirectory) -> Quick:
    return Quick(data_directory)


def test_the_samples_are_walked_once_and_found_there_the_second_time(shell: Shell) -> None:
    """`run` walks every sample to an end or a named hold; a second `run` finds them and does nothing again."""
    files = sorted(str(p) for p in SAMPLES.iterdir() if p.suffix == ".eml")
    first = shell.json("run", str(SAMPLES))
    assert set(first) == {"messages", "duplicates", "skipped", "counts", "seconds", "unserved"}
    assert first["unserved"] == []
    assert first["skipped"] == [] and first["duplicates"] == []
    assert len(first["messages"]) == len(files)
    assert sum(first["counts"].values()) == len(files)
    assert {"draft_ready", "quarantined", "archived"} <= set(first["counts"])
    for message in first["messages"]:
        assert {"run", "status", "hold", "from", "subject", "received_at", "updated_at", "error_message"} <= set(
            message
        )
        assert message["status"] in ("archived", "sent", "rejected") or message["hold"] != "none"

    second = shell.json("run", str(SAMPLES))
    assert second["messages"] == [] and sorted(d["path"] for d in second["duplicates"]) == files
    listed = shell.json("messages")
    assert {m["run"]: m["status"] for m in listed} == {m["run"]: m["status"] for m in first["messages"]}
    _look_at_one(shell, next(m for m in listed if m["status"] == "draft_ready"))


def _look_at_one(shell: Shell, message: dict[str, Any]) -> None:
    actions = shell.json("actions", message["run"])
    assert [a["step"] for a in actions] == ["security_scan", "context_retrieval", "classify", "draft", "route"]
    keys = {"action", "step", "status", "attempt", "retry_count", "duration_ms", "model_used", "token_usage"}
    assert all(keys | {"error_message", "started_at", "ended_at"} <= set(a) for a in actions)
    history = shell.json("show", message["run"][:12])
    assert [e["version"] for e in history] == sorted(e["version"] for e in history)
    assert history[0]["type"] == "RunStarted" and {"seq", "version", "type", "at", "data"} <= set(history[0])
    answer = shell.json("why", message["run"])
    assert answer["state"] == "draft_ready" and answer["hold"]["reason"] == "approval"
    assert message["run"] in shell.run("messages", "--status", "draft_ready")
    assert "approval" in shell.run("why", message["run"])


def test_a_killed_run_is_taken_up_by_the_next_one(shell: Shell, tmp_path: Path) -> None:
    """`run` killed with SIGKILL leaves servers behind; the next `run` takes them over and finishes every mail once."""
    mails = tmp_path / "mails"
    mails.mkdir()
    for number in range(120):
        text = f"From: Ann <ann@x.example>\nSubject: Order {number}\nMessage-ID: <{number}@x.example>\n\nWhere is it?\n"
        (mails / f"{number:03}.eml").write_text(text)
    process = shell.start("run", str(mails), "--json")
    _wait_for_a_commit(shell, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    report = shell.json("run", str(mails))
    assert len(report["messages"]) + len(report["duplicates"]) == 120
    listed = shell.json("messages")
    assert len(listed) == 120 and {m["status"] for m in listed} == {"draft_ready"}
    differences = shell.json("projections", "verify")
    assert differences["differences"] in ([], 0)


def _wait_for_a_commit(shell: Shell, process: "subprocess.Popen[str]") -> None:
    """Until the running command has walked at least one mail, as a look beside it shows."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        look = shell.start("messages", "--json")
        output, _ = look.communicate(timeout=WITHIN_S)
        if look.returncode == 0 and json.loads(output):
            return
    raise AssertionError("the command never walked a mail")


def test_mails_taken_in_beside_a_running_up_are_walked_by_it(shell: Shell) -> None:
    """`ingest` and looks use the addresses of the running `up`; a second owner is refused with its pid."""
    up = shell.start("up")
    try:
        assert up.stdout is not None
        while "walking" not in (line := up.stdout.readline()):
            assert line, up.communicate()
        taken = shell.json("ingest", str(SAMPLES))
        assert taken["taken"] and all(t["already"] is False for t in taken["taken"])
        again = shell.json("ingest", str(SAMPLES))
        assert all(t["already"] is True for t in again["taken"])
        refusal = shell.run("run", str(SAMPLES), code=1)
        assert str(up.pid) in refusal and "--data-dir" in refusal
        assert len(shell.json("messages")) == len(taken["taken"])
    finally:
        up.send_signal(signal.SIGINT)
        output, errors = up.communicate(timeout=WITHIN_S)
    assert up.returncode == 0, (output, errors)


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        (("run", "/nowhere/at/all"), {}, 2, "there is no file or folder"),
        (("run",), {}, 2, "Missing argument"),
        (("messages",), {"WAYBOOK_NATS_URL": "nats://127.0.0.1:1"}, 1, "WAYBOOK_NATS_URL"),
        (("messages",), {"WAYBOOK_DATABASE_URL": "postgresql://127.0.0.1:1/x"}, 1, "WAYBOOK_DATABASE_URL"),
        (("messages",), {"WAYBOOK_SLOTS": "many"}, 2, "WAYBOOK_SLOTS"),
        (("show", "zzz"), {}, 1, "there is no run zzz"),
        (("why", "zzz"), {}, 1, "there is no run zzz"),
    ],
)
def test_bad_input_is_answered_with_a_sentence_and_an_exit_code(
    quick: Quick, arguments: tuple[str, ...], environment: dict[str, str], code: int, said: str
) -> None:
    """What cannot be done is said in one sentence that names the way out, never with a traceback."""
    output = quick.run(*arguments, code=code, **environment)
    assert said in output and "Traceback" not in output


def test_files_that_are_no_mail_are_named_and_the_others_are_walked(shell: Shell, tmp_path: Path) -> None:
    """Empty, binary and unreadable files are skipped with a reason; a file named on the command line ends in code 1."""
    (tmp_path / "good.eml").write_text("From: a@x.example\nSubject: hello\n\nIs anybody there?\n")
    (tmp_path / "empty.eml").write_bytes(b"")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 8)
    with (tmp_path / "huge.eml").open("wb") as file:
        file.write(b"From: a@x.example\nSubject: huge\n\n")
        file.truncate(200 * 1024 * 1024)
    report = shell.json("run", str(tmp_path))
    assert len(report["messages"]) == 1
    reasons = {Path(s["path"]).name: s["reason"] for s in report["skipped"]}
    assert set(reasons) == {"empty.eml", "noise.bin", "huge.eml"}
    assert "empty" in reasons["empty.eml"] and "too large" in reasons["huge.eml"]
    shell.run("run", str(tmp_path / "empty.eml"), code=1)


def test_a_reply_is_given_the_earlier_mails_of_its_thread(quick: Quick, tmp_path: Path) -> None:
    """What the sender wrote before stands in the context of the next mail, and the hidden part of it does not."""
    head = "From: Ann <ann@example.org>\nTo: shop@example.com\nContent-Type: text/html; charset=utf-8\n"
    first, second = tmp_path / "first.eml", tmp_path / "second.eml"
    hidden = '<p style="display:none">unseen words</p>'
    first.write_text(
        f"{head}Subject: Blue chair\nMessage-ID: <one@example.org>\n\n<p>The chair is broken.</p>{hidden}\n"
    )
    second.write_text(
        f"{head}Subject: Re: Blue chair\nMessage-ID: <two@example.org>\nReferences: <one@example.org>\n\n"
        "<p>When will you send me a new one, please?</p>\n"
    )
    quick.json("run", str(first))
    (message,) = quick.json("run", str(second))["messages"]
    retrieved = str(next(a for a in quick.json("actions", message["run"]) if a["step"] == "context_retrieval"))
    assert "Earlier in this thread (Ann <ann@example.org>): The chair is broken." in retrieved
    assert "unseen words" not in retrieved


def test_an_installation_where_nothing_was_walked_yet_can_be_looked_at(quick: Quick) -> None:
    """On a new data directory looks find nothing, and `ingest` keeps mails for the next `run`."""
    assert quick.json("messages") == []
    taken = quick.json("ingest", str(SAMPLES / "01-invoice-question.eml"))
    assert len(taken["taken"]) == 1 and taken["taken"][0]["already"] is None
    report = quick.json("run", str(SAMPLES / "02-bug-report-german.eml"))
    assert len(report["messages"]) == 1
    assert len(quick.json("messages")) == 2

"""A whole send at the command line: real servers, a real mail server, a person who approves."""

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.effects.mail_server import MailServer, mail_server
from tests.integration.shell import Quick, Shell

from waybook.inbox.settings import InboxSettings
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings
from waybook.testing.servers import directory_for_tests

GUIDE = Path(__file__).parents[2] / "docs" / "inbox.md"


class Office:
    """An installation with `up` at work, and the mail server that it sends by."""

    def __init__(self, shell: Shell, server: MailServer, runner: asyncio.Runner) -> None:
        self.shell = shell
        self.server = server
        self._runner = runner

    def until(self, holds: Callable[[], bool]) -> None:
        """Returns as soon as `holds`; the mail server answers meanwhile."""
        for _ in range(200):
            if holds():
                return
            self._runner.run(asyncio.sleep(0.1))
        raise AssertionError("it did not come to that")

    def state(self, run: str) -> str:
        return str(self.shell.json("why", run)["state"])


@pytest.fixture(scope="module")
def office(postgres_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with asyncio.Runner() as runner:
        server = MailServer()
        running = mail_server(server)
        runner.run(running.__aenter__())
        directories = directory_for_tests(postgres_template)
        directory = runner.run(directories.__aenter__())
        config = tmp_path_factory.mktemp("config") / "waybook.toml"
        config.write_text(
            f'[effects.mail]\nadapter = "smtp"\nhost = "127.0.0.1"\nport = {server.port}\n'
            'sender = "Help <help@ours.example>"\ntls = "none"\n'
        )
        shell = Quick(directory)
        shell._environment["WAYBOOK_CONFIG"] = str(config)
        try:
            with shell.up():
                shell.run("policy", "set", "human_delay_seconds=0", "--reason", "no window in tests")
                yield Office(shell, server, runner)
        finally:
            runner.run(directories.__aexit__(None, None, None))
            runner.run(running.__aexit__(None, None, None))


def drafted(office: Office, folder: Path, name: str) -> str:
    mail = folder / f"{name}.eml"
    mail.write_text(
        f"From: Ann <ann@customer.example>\nSubject: Order 4711\nMessage-ID: <{name}@customer.example>\n"
        "References: <first@customer.example>\n\nHello, could you please tell me where my order is?\n"
    )
    run = str(office.shell.json("ingest", str(mail))["taken"][0]["run"])
    office.until(lambda: any(r["run"] == run for r in office.shell.json("approvals")))
    return run


def test_an_approved_reply_leaves_once_as_a_proper_answer(office: Office, tmp_path: Path) -> None:
    """What a person wrote and approved reaches the sender, once, with the headers of an automatic answer."""
    run = drafted(office, tmp_path, "sent")
    before = len(office.server.taken)
    assert office.shell.json("save", run, "--text", "It ships today.", "--as", "ann")["ok"]
    assert office.shell.json("approve", run, "--as", "ann", "--reason", "fine")["ok"]
    office.until(lambda: office.state(run) == "sent")
    (mail,) = office.server.taken[before:]
    assert str(mail["To"]) == "ann@customer.example"
    assert mail.get_content().strip() == "It ships today."
    assert str(mail["In-Reply-To"]) == "<sent@customer.example>"
    assert " ".join(str(mail["References"]).split()) == "<first@customer.example> <sent@customer.example>"
    assert str(mail["Auto-Submitted"]) == "auto-replied"
    assert str(mail["X-Auto-Response-Suppress"]) == "OOF, AutoReply"
    events: list[dict[str, Any]] = office.shell.json("show", run)
    assert max(e["version"] for e in events) <= 12


def test_what_the_server_refuses_for_good_fails_and_a_person_sends_it_again(office: Office, tmp_path: Path) -> None:
    """A refusal leaves the draft and its approval; `retry` is a resend of the very same reply."""
    run = drafted(office, tmp_path, "refused")
    before = len(office.server.taken)
    office.server.refused = "ann@customer.example"
    assert office.shell.json("approve", run, "--as", "ann")["ok"]
    office.until(lambda: office.state(run) == "failed")
    assert "550" in office.shell.json("why", run)["because"]
    office.server.refused = None
    office.shell.run("retry", run, "--as", "ann")
    office.until(lambda: office.state(run) == "sent")
    assert len(office.server.taken) == before + 1


def test_the_kill_switch_sends_an_approved_reply_back(office: Office, tmp_path: Path) -> None:
    """While it is on nothing leaves, whoever approves; the reply waits for a person, and `why` says so."""
    run = drafted(office, tmp_path, "stopped")
    before = len(office.server.taken)
    office.shell.run("kill-switch", "on", "--reason", "wrong prices")
    try:
        assert office.shell.json("approve", run, "--as", "ann")["ok"]
        office.until(lambda: office.state(run) == "draft_ready")
        why = office.shell.json("why", run)
        assert (why["hold"]["kind"], why["hold"]["reason"]) == ("waiting", "approval")
        assert why["because"] == "it came back before it left: the kill switch was on"
    finally:
        office.shell.run("kill-switch", "off", "--reason", "corrected")
    assert len(office.server.taken) == before


def test_what_cannot_be_called_back_any_more_is_refused_with_the_reason(office: Office, tmp_path: Path) -> None:
    run = drafted(office, tmp_path, "late")
    assert "not_approved" in office.shell.run("undo", run, "--json", code=1)
    assert office.shell.json("approve", run, "--as", "ann")["ok"]
    office.until(lambda: office.state(run) == "sent")
    assert "already_sent" in office.shell.run("undo", run, "--json", code=1)


def test_every_decision_is_shown_with_its_reason(office: Office, tmp_path: Path) -> None:
    """The gates' and people's, in their order, by `show` and `why`, also when the reply has left."""
    run = drafted(office, tmp_path, "reasons")
    assert "automatic replies are off (auto_reply)" in office.shell.run("why", run)
    assert office.shell.json("save", run, "--text", "By hand.", "--reason", "wrong price", "--as", "bob")["ok"]
    office.server.refused = "ann@customer.example"
    assert office.shell.json("approve", run, "--as", "ann", "--reason", "fine")["ok"]
    office.until(lambda: office.state(run) == "failed")
    refusal = office.shell.run("save", run, "--text", "x", code=1)
    assert "refused (illegal_edge): the mail is failed" in refusal and "retry --how review" in refusal
    assert office.shell.json("retry", run, "--how", "review", "--reason", "look again", "--as", "eve")["ok"]
    office.server.refused = None
    assert office.shell.json("approve", run, "--as", "ann", "--reason", "now it is")["ok"]
    office.until(lambda: office.state(run) == "sent")
    assert office.shell.json("why", run)["because"] == "approved by ann: now it is"
    shown = office.shell.run("show", run)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert [line for line in lines if line.startswith(("gates", "decided", "came back"))] == [
        "gates human_review: automatic replies are off (auto_reply)",
        "decided approved by ann: fine",
        "came back review",
        "decided approved by ann: now it is",
    ]
    events: list[dict[str, Any]] = office.shell.json("show", run)
    (again,) = [e["data"] for e in events if e["type"] == "Transitioned" and e["data"]["from"] == "failed"]
    assert again["reason"] == "tried again by eve: look again"
    saved = [e["data"]["payload"] for e in events if e["type"] == "EventPublished" and "wrong price" in str(e)]
    assert [(one["by"], one["reason"]) for one in saved] == [("bob", "wrong price")]


def test_what_people_make_of_drafts_reaches_the_scorecard(office: Office, tmp_path: Path) -> None:
    """When the answer has left, or is refused; and a raised threshold is a person's to lower."""
    run = drafted(office, tmp_path, "judged")
    assert office.shell.json("approve", run, "--as", "ann")["ok"]
    office.until(lambda: bool(office.shell.json("sender", "show", "ann@customer.example")["matched"]))
    (category,) = office.shell.json("sender", "show", "ann@customer.example")["matched"]
    assert office.shell.json("policy", "loosen", category, "--reason", "as it was")["already"] is True
    assert "were let go as the gates would have" in office.shell.run("sender", "show", "ann@customer.example")


def test_what_came_in_no_order_is_refused_and_changes_nothing(office: Office, tmp_path: Path) -> None:
    """Every verb to a reply that left, each with a stable word; and a release of what was never kept."""
    run = drafted(office, tmp_path, "order")
    refusal = office.shell.run("release", run, "--reason", "why not", code=1)
    assert "refused (illegal_edge): the mail is draft_ready; only a quarantined one is released" in refusal
    assert office.shell.json("approve", run, "--as", "ann")["ok"]
    office.until(lambda: office.state(run) == "sent")
    before = len(office.shell.json("show", run))
    late = {"undo": "already_sent", "save": "terminal"}
    for verb in ("approve", "reject", "revoke", "release", "retry", "undo", "block", "redraft", "save"):
        words = ("--text", "x") if verb == "save" else ()
        answer = json.loads(office.shell.run(verb, run, *words, "--reason", "late", "--as", "bob", "--json", code=1))
        assert (answer["ok"], answer["reason"]) == (False, late.get(verb, "terminal"))
    assert len(office.shell.json("show", run)) == before


def test_the_window_costs_one_commit_and_the_whole_way_twelve_at_most(office: Office, tmp_path: Path) -> None:
    """From the mail to the sent reply, with a window that its timer ends."""
    office.shell.run("policy", "set", "human_delay_seconds=0.2", "--reason", "a window that ends by itself")
    try:
        run = drafted(office, tmp_path, "window")
        assert office.shell.json("approve", run, "--as", "ann")["ok"]
        office.until(lambda: office.state(run) == "sent")
    finally:
        office.shell.run("policy", "set", "human_delay_seconds=0", "--reason", "as before")
    events: list[dict[str, Any]] = office.shell.json("show", run)
    assert "TimerFired" in {e["type"] for e in events}
    assert max(e["version"] for e in events) <= 12


def _blocks(kind: str) -> list[str]:
    section = GUIDE.read_text(encoding="utf-8").partition("## How a reply leaves")[2]
    return re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)


def test_what_the_guide_shows_can_be_done(office: Office, tmp_path: Path) -> None:
    """Each command in the order of the guide, and nothing left: the window was open all the time."""
    run = drafted(office, tmp_path, "guide")
    before = len(office.server.taken)
    office.shell.run("policy", "set", "human_delay_seconds=120", "--reason", "as the guide")
    try:
        for line in _blocks("console")[0].splitlines():
            words = shlex.split(line.removeprefix("$ waybook ").replace("RUN", run), comments=True)
            office.shell.run(*words)
    finally:
        office.shell.run("policy", "set", "human_delay_seconds=0", "--reason", "as before")
    assert office.state(run) == "archived"
    assert len(office.server.taken) == before


def test_the_settings_of_the_guide_are_settings(tmp_path: Path) -> None:
    (tmp_path / "waybook.toml").write_text(_blocks("toml")[0], encoding="utf-8")
    settings = Settings.load({}, tmp_path)
    route = mail_agent(settings)[1][InboxSettings].route
    assert (route.auto_reply, route.shadow, set(settings.effects)) == (True, True, {"mail"})
    assert not mail_agent(Settings())[1][InboxSettings].route.auto_reply

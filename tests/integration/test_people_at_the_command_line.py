"""Deciding at the command line on real servers: one `waybook up`, and a process of its own for every command."""

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.integration.shell import WITHIN_S, Quick, Shell, quick_up

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.events.audit import decode_record

GUIDE = Path(__file__).parents[2] / "docs" / "approvals.md"


@pytest.fixture(scope="module")
def shell(postgres_template: Path) -> Iterator[Shell]:
    """A data directory in which `up` is at work."""
    with quick_up(postgres_template) as shell:
        yield shell


@pytest.fixture
def drafted(shell: Shell, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A mail of its own whose reply waits for a person; its run."""
    mail = tmp_path / "mail.eml"
    name = request.node.name
    mail.write_text(
        f"From: Ann <ann@customer.example>\nSubject: Order of {name}\nMessage-ID: <{name}@customer.example>\n\n"
        "Hello, could you please tell me where my order is?\n"
    )
    run = str(shell.json("ingest", str(mail))["taken"][0]["run"])
    until(lambda: any(r["run"] == run for r in shell.json("approvals")))
    return run


def refused(shell: Shell, *arguments: str) -> dict[str, Any]:
    """The JSON of a command that was refused."""
    answer: dict[str, Any] = json.loads(shell.run(*arguments, "--json", code=1))
    assert answer["ok"] is False
    return answer


def until(holds: Callable[[], bool]) -> None:
    """Returns as soon as `holds`; fails when it does not within many looks."""
    assert any(holds() for _ in range(100))


def state(shell: Shell, run: str) -> str:
    return str(shell.json("why", run)["state"])


def test_of_two_approvals_at_once_one_wins_and_the_other_is_told(shell: Shell, drafted: str) -> None:
    """FB-40: two people at two browsers; one decision, the loser learns whose, and the card is gone."""
    both = [shell.start("approve", drafted, "--as", name, "--json") for name in ("ann", "bob")]
    outputs = [process.communicate(timeout=WITHIN_S)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1]
    won, lost = sorted((json.loads(output) for output in outputs), key=lambda answer: not answer["ok"])
    assert won["ok"] and lost["reason"] == "already_decided" and won["by"] in lost["text"]
    assert state(shell, drafted) == "approved"
    assert [r for r in shell.json("approvals") if r["run"] == drafted] == []
    (row,) = [r for r in shell.json("approvals", "--status", "all") if r["run"] == drafted]
    assert (row["status"], row["decided_by"]) == ("approved", won["by"])
    decided = [e for e in shell.json("show", drafted) if e["type"] == "ApprovalDecided"]
    assert [e["data"]["by"] for e in decided] == [won["by"]]


def test_an_approval_after_a_rejection_is_refused(shell: Shell, drafted: str) -> None:
    """FB-40: the run has ended, and says so."""
    assert shell.json("reject", drafted, "--reason", "wrong tone", "--as", "ann")["ok"]
    assert refused(shell, "approve", drafted, "--as", "bob")["reason"] == "terminal"
    assert state(shell, drafted) == "rejected"


def test_what_was_changed_after_it_was_looked_at_is_not_approved(shell: Shell, drafted: str) -> None:
    """FB-42: the edit revokes what waits and what was given; the new text has to be approved anew."""
    (seen,) = [r for r in shell.json("approvals") if r["run"] == drafted]
    words = {"text": "Your order comes on Monday."}
    assert shell.json("signal", drafted, "DraftSaved", "--data", json.dumps(words), "--as", "bob")["ok"]
    old = f"{drafted}/{seen['approval']}"
    assert refused(shell, "approve", old, "--as", "ann")["reason"] == "revoked"
    assert refused(shell, "approve", drafted, "--digest", seen["digest"], "--as", "ann")["reason"] == "changed"
    (new,) = [r for r in shell.json("approvals") if r["run"] == drafted]
    assert new["digest"] != seen["digest"]
    assert shell.json("approve", drafted, "--as", "ann")["digest"] == new["digest"]
    assert shell.json("signal", drafted, "DraftSaved", "--data", json.dumps({"text": "On Tuesday."}), "--as", "bob")[
        "ok"
    ]
    assert state(shell, drafted) == "draft_ready"
    (message,) = [m for m in shell.json("messages") if m["run"] == drafted]
    assert message["approval_source"] is None
    saved = [e["data"] for e in shell.json("show", drafted) if e["type"] == "EventPublished" and "DraftSaved" in str(e)]
    assert [s["payload"]["by"] for s in saved] == ["bob", "bob"]


def test_looking_at_an_approval_uses_nothing_up(shell: Shell, drafted: str) -> None:
    """FB-43: whoever looks, as often as they like, decides nothing; the person's word counts once."""
    before = len(shell.json("show", drafted))
    for _ in range(2):
        shell.json("approvals")
        shell.json("why", drafted)
        shell.run("approvals")
    assert len(shell.json("show", drafted)) == before
    assert shell.json("approve", drafted, "--as", "ann")["ok"]
    assert refused(shell, "approve", drafted, "--as", "ann")["reason"] == "already_decided"


def test_who_looked_at_a_run_is_recorded(shell: Shell, drafted: str) -> None:
    """The history and the attempts hold what people wrote: whoever reads them stands in AUDITIN, with refused attempts."""
    shell.json("show", drafted, "--as", "eve")
    shell.json("actions", drafted, "--as", "eve")
    refused(shell, "approve", f"{drafted}/99.9", "--as", "eve")
    records = [decode_record(r) for r in asyncio.run(_audited(shell)) if drafted.encode() in r]
    by_eve = [(type(r).__name__, getattr(r, "what", getattr(r, "reason", ""))) for r in records if r.actor == "eve"]
    assert by_eve == [("Accessed", "history"), ("Accessed", "actions"), ("CommandRefused", "unknown_approval")]


async def _audited(shell: Shell) -> list[bytes]:
    """What waits for the auditor."""
    owner = shell.directory.owner()
    assert owner is not None and owner.addresses is not None
    client = await nats.connect(owner.addresses.nats_url)
    try:
        stream = client.jetstream()
        last = (await stream.stream_info("AUDITIN")).state.last_seq
        return [(await stream.get_msg("AUDITIN", n)).data or b"" for n in range(1, last + 1)]
    finally:
        await client.close()


def test_why_names_what_waits_who_decides_and_how(shell: Shell, drafted: str) -> None:
    """Invariant 9: the named blocker, with the command that ends it."""
    answer = shell.json("why", drafted)
    assert answer["hold"]["reason"] == "approval"
    assert answer["approvals"][0]["grant"] == "decide:mail"
    text = shell.run("why", drafted)
    assert "reply to ann@customer.example" in text and f"waybook approve {drafted}/" in text


def test_a_command_that_is_repeated_gets_its_first_answer(shell: Shell, drafted: str) -> None:
    """The same --command-id is the same intention; also where it went the first time is known afterwards."""
    arguments = ("approve", drafted, "--as", "ann", "--command-id", f"once-{drafted}")
    first = shell.json(*arguments)
    again = shell.json(*arguments, "--wait", "1")
    assert first["already"] is False and again["ok"] and again["already"] is True
    assert len([e for e in shell.json("show", drafted) if e["type"] == "ApprovalDecided"]) == 1


def test_a_command_id_that_was_given_for_something_else_is_refused_aloud(shell: Shell, drafted: str) -> None:
    """FB-03: another body under a known id is an error, whether the server's window is open or not; never a silent yes."""
    name = f"twice-{drafted}"
    assert shell.json("approve", drafted, "--as", "ann", "--command-id", name)["ok"]
    refusal = shell.run("cancel", drafted, "--reason", "no", "--as", "ann", "--command-id", name, code=1)
    assert f"the command id {name} was given before for something else" in refusal and "leave it away" in refusal
    assert [e["type"] for e in shell.json("show", drafted)].count("RunEnded") == 0


def test_a_run_is_cancelled_with_a_reason(shell: Shell, drafted: str) -> None:
    shell.run("cancel", drafted, code=2)
    assert shell.json("cancel", drafted, "--reason", "double", "--as", "ann")["ok"]
    assert refused(shell, "cancel", drafted, "--reason", "again")["reason"] == "terminal"
    assert shell.json("why", drafted)["next_move"] == "none: the run has ended as cancelled (cancelled by ann: double)"
    (ended,) = [e["data"] for e in shell.json("show", drafted) if e["type"] == "RunEnded"]
    assert ended["reason"] == "cancelled by ann: double"


def test_a_run_that_a_person_took_over_stands_still_until_it_is_handed_back(shell: Shell, drafted: str) -> None:
    """`why` names who has it; the approval that waited still waits afterwards."""
    assert shell.json("take-over", drafted, "--reason", "by phone", "--as", "ann")["ok"]
    assert refused(shell, "take-over", drafted, "--as", "bob")["reason"] == "taken_over"
    held = shell.json("why", drafted)["hold"]
    assert held["reason"] == "taken_over" and "ann" in held["text"]
    (message,) = [m for m in shell.json("messages") if m["run"] == drafted]
    assert (message["hold"], message["hold_reason"]) == ("waiting", "taken_over")
    assert shell.json("hand-back", drafted, "--as", "ann")["ok"]
    assert shell.json("why", drafted)["hold"]["reason"] == "approval"


def test_a_conversation_is_closed_and_a_new_message_opens_it(shell: Shell, drafted: str, tmp_path: Path) -> None:
    """Closed by a person; the next mail of the thread opens it again before its run begins."""
    assert shell.json("thread", drafted, "resolved", "--as", "ann")["run"] == drafted
    assert shell.json("thread", drafted, "resolved", "--as", "ann")["already"] is True
    name = "test_a_conversation_is_closed_and_a_new_message_opens_it"
    mail = tmp_path / "next.eml"
    mail.write_text(
        f"From: Ann <ann@customer.example>\nSubject: Re: Order\nMessage-ID: <next-{name}@customer.example>\n"
        f"References: <{name}@customer.example>\n\nAnd when does it come?\n"
    )
    shell.json("ingest", str(mail))
    assert shell.json("thread", drafted, "open", "--as", "ann")["already"] is True
    shell.run("thread", drafted, "gone", code=2)


def test_several_runs_are_decided_on_at_once(shell: Shell, drafted: str) -> None:
    """One outcome each; more than fifty are refused as a whole before anything is given."""
    output = shell.run("approve", drafted, drafted, f"{drafted}/99.9", "--as", "ann", "--json", code=1)
    assert [(a["ok"], a["reason"]) for a in json.loads(output)] == [(True, None), (False, "unknown_approval")]
    many = [f"{drafted}/{n}.0" for n in range(51)]
    assert "at most 50" in shell.run("approve", *many, code=2)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("approve", "zzz"), 1, "there is no run zzz"),
        (("approve", "a/"), 2, "is no run and no RUN/APPROVAL"),
        (("approvals", "--status", "foo"), 2, "is none of"),
        (("messages", "--status", "foo"), 2, "there is no state foo; one of received, "),
        (("signal", "abc", "DraftSaved", "--data", "{"), 2, "--data is no JSON object"),
        (("policy", "set", "nothing"), 2, "is no KEY=VALUE"),
        (("kill-switch",), 2, ""),
    ],
)
def test_bad_input_is_answered_with_a_sentence(shell: Shell, arguments: tuple[str, ...], code: int, said: str) -> None:
    output = shell.run(*arguments, code=code)
    assert said in output and "Traceback" not in output


def test_without_a_walker_nothing_is_given_and_the_way_out_is_named(data_directory: DataDirectory) -> None:
    """Exit code 1; the command is not left lying for whoever comes later."""
    shell = Quick(data_directory)
    output = shell.run("kill-switch", "on", code=1)
    assert "waybook up" in output and "nothing was given" in output
    assert shell.json("kill-switch", "status")["on"] is False
    assert shell.json("approvals") == [] and shell.json("policy")["version"] == 0


def test_policy_kill_switch_and_grants_hold_for_all_runs(shell: Shell, drafted: str) -> None:
    """Who turned what, and why; without the grant nothing is decided, and the last who can grant stays.

    The last of this module, since grants that were given once hold for everything that follows.
    """
    assert shell.json("kill-switch", "on", "--reason", "odd mails", "--as", "ann")["ok"]
    assert shell.json("kill-switch", "on", "--as", "bob")["already"] is True
    status = shell.json("kill-switch", "status")
    assert (status["on"], status["by"], status["reason"]) == (True, "ann", "odd mails")
    assert "odd mails" in shell.run("kill-switch", "status")
    assert shell.json("kill-switch", "off", "--as", "ann")["ok"]
    assert shell.json("policy", "set", "daily_cap=5", "hours=9-17", "--as", "ann")["ok"]
    assert shell.json("policy", "unset", "hours", "--as", "ann")["ok"]
    policy = shell.json("policy")
    assert (policy["version"], policy["values"]) == (2, {"daily_cap": 5})
    assert "daily_cap" in shell.run("policy")
    assert "nothing was granted yet" in shell.run("grants")
    assert refused(shell, "grants", "set", "ann", "decide", "--as", "ann")["reason"] == "would_lock_out"
    assert shell.json("grants", "set", "ann", "*", "--as", "ann")["ok"]
    assert shell.json("grants", "set", "bob", "decide:pay", "--as", "ann")["ok"]
    assert refused(shell, "approve", drafted, "--as", "bob")["reason"] == "not_permitted"
    assert refused(shell, "kill-switch", "on", "--as", "bob")["reason"] == "not_permitted"
    assert shell.json("grants", "remove", "bob", "--as", "ann")["ok"]
    assert shell.json("grants")["people"] == {"ann": ["*"]}
    assert shell.json("approve", drafted, "--as", "ann")["ok"]
    assert shell.json("projections", "verify")["differing"] == 0


def test_the_commands_of_the_guide_work_as_shown(shell: Shell, drafted: str) -> None:
    """Every command line in docs/approvals.md, in order, as somebody would type it."""
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) > 8 and all(line.startswith("$ waybook ") for line in lines)
    for line in lines:
        shell.run(*(word.replace("RUN", drafted) for word in shlex.split(line)[2:]))
        if "kill-switch on" in line:  # what was approved and not sent is a person's again
            until(lambda: state(shell, drafted) == "draft_ready")
    rows = [r for r in shell.json("approvals", "--status", "all") if r["run"] == drafted]
    assert [r["status"] for r in rows] == ["revoked", "pending"]

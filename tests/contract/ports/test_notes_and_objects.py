"""Notes and Objects: what every adapter keeps."""

import os

import pytest
from tests.contract.ports.adapters_under_test import Ports

from waybook.events.headers import command_of
from waybook.events.subjects import RunKey


async def test_an_object_is_read_back_byte_by_byte(ports: Ports) -> None:
    data = os.urandom(1_000_000)
    await ports.objects.put("run/action: a name with blanks/ü", data)
    assert await ports.objects.get("run/action: a name with blanks/ü") == data


async def test_an_object_may_be_empty_and_may_be_written_again(ports: Ports) -> None:
    await ports.objects.put("name", b"")
    assert await ports.objects.get("name") == b""
    await ports.objects.put("name", b"second")
    await ports.objects.put("name", b"second")
    assert await ports.objects.get("name") == b"second"


async def test_an_object_that_is_not_there_is_a_key_error(ports: Ports) -> None:
    with pytest.raises(KeyError):
        await ports.objects.get("nothing")


async def test_notes_are_taken(ports: Ports) -> None:
    await ports.notes.audit("test", "record1", b"{}")
    await ports.notes.audit("test", "record1", b"{}")
    await ports.notes.trace("test", "late_result", b"{}")
    headers = {"Nats-Msg-Id": "c1", "Nats-Expected-Stream": "COMMANDS", "Waybook-Reason": "killed its worker"}
    await ports.notes.bury("cmd.ctl.any.gw.test.inbox.r1.approve", b"{}", headers)
    await ports.notes.bury("cmd.ctl.any.gw.test.inbox.r1.approve", b"{}", headers)


async def test_the_commands_of_a_run_in_dead_are_found_by_the_run(ports: Ports) -> None:
    """The last on each subject, in the order in which they were buried; those of other runs stay out."""
    buried = [
        ("cmd.new.any.cli.test.inbox.r1.start", b"1", {"Nats-Msg-Id": "c1", "Waybook-Reason": "first"}),
        ("cmd.ctl.any.gw.test.inbox.r1.cancel", b"2", {"Nats-Msg-Id": "c2", "Waybook-Command": "moved"}),
        ("cmd.ctl.any.gw.test.inbox.r2.cancel", b"3", {"Nats-Msg-Id": "c3"}),
        ("cmd.new.any.cli.test.inbox.r1.start", b"4", {"Nats-Msg-Id": "c4"}),
    ]
    for subject, payload, headers in buried:
        await ports.notes.bury(subject, payload, headers)
    found = await ports.notes.buried(RunKey("test", "inbox", "r1"))
    assert [(r.subject, r.payload, command_of(r.headers)) for r in found] == [
        ("dead.cmd.ctl.any.gw.test.inbox.r1.cancel", b"2", "moved"),
        ("dead.cmd.new.any.cli.test.inbox.r1.start", b"4", "c4"),
    ]
    assert all(record.stored_at > 0 for record in found)
    assert await ports.notes.buried(RunKey("test", "inbox", "none")) == []


async def test_an_answer_nobody_waits_for_is_no_error(ports: Ports) -> None:
    await ports.replies.answer("_INBOX.nobody.1", b"{}")

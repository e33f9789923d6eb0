"""Mails that come twice, too large, without a name or a date, or with bytes that a database refuses."""

import asyncio
import json
from pathlib import Path

from tests.integration.field.desk import Desk, listed
from tests.integration.field.mails import case_mail, mail, replaced
from tests.integration.shell import Shell

from waybook.inbox.intake.json_mail import mail_bytes
from waybook.inbox.intake.sources import Item
from waybook.inbox.remarks import DATE_OFF
from waybook.inbox.starting import mail_start
from waybook.services.intake.starts import Starts, Submission

GOOD = mail(message_id="<good@customer.example>", subject="a good mail")
MIB = 1024 * 1024


def test_one_mail_that_comes_often_has_one_run(desk: Desk) -> None:
    """At once, later, under another delivery's headers, and after an intake that died before its answer."""
    tenant = desk.new_tenant()
    body = {"message_id": "m-1001", "from": "ana@customer.example", "subject": "Order 12", "text": "Where is it?"}
    raw = json.dumps(body).encode()

    async def at_once() -> set[str]:
        publishers = [desk.starts(tenant) for _ in range(3)]
        item = next(iter(_items(desk, raw)))
        found = await asyncio.gather(*(_submit(starts, item) for starts in publishers))
        return {run for runs in found for run in runs}

    (run,) = desk.now(at_once())
    again = desk.walk(raw, suffix="json", tenant=tenant)
    assert [(one.run, one.already) for one in again.walked] == [(run, True)]

    async def killed_before_its_answer() -> None:
        async for _ in desk.starts(tenant).submit(_items(desk, raw)):
            return  # stored; nobody waits for the answer

    desk.now(killed_before_its_answer())
    fed = desk.walk(mail(), replaced(mail(), "Received", "from elsewhere by mx.shop.example"), tenant=tenant)
    assert sorted(one.already for one in fed.walked) == [False, True]  # whichever of the two comes first
    assert len(desk.rows(tenant)) == 2
    (row,) = [r for r in desk.rows(tenant) if r["run"] == run]
    assert row["walk"] == 1 and len(desk.now(desk.models.actions(run, tenant=tenant))) == 5


def _items(desk: Desk, raw: bytes) -> list[Item]:
    made = mail_bytes(json.loads(raw))
    assert made is not None
    return [Item("webhook", made)]


async def _submit(starts: Starts, item: Item) -> list[str]:
    found = [one async for one in starts.submit([item])]
    assert await starts.until_answered(30)
    return [one.key.run for one in found if isinstance(one, Submission) and one.answer is not None and one.answer.ok]


def test_the_second_fetch_of_a_folder_is_told_as_duplicates(desk: Desk, tmp_path: Path) -> None:
    """Mails without a usable id are threads of their own, under ids that come from their bytes."""
    none = {"message_id": ""}
    mails = [
        *(mail(sender=f"p{n}@customer.example", body=f"Question {n}?\n", **none) for n in range(3)),
        mail(message_id=" ", sender="p4@customer.example"),
        mail("In-Reply-To: ", sender="p5@customer.example", message_id="<p5@customer.example>"),
        mail("References: <> <  >\nIn-Reply-To: <>", sender="p6@customer.example", message_id="<>"),
        mail("In-Reply-To: <>", sender="p7@customer.example", **none),
    ]
    tenant = desk.new_tenant()
    first = desk.walk(*mails, tenant=tenant)
    second = desk.walk(*mails, tenant=tenant)
    assert len({one.run for one in first.walked}) == len({one.row["thread"] for one in first.walked}) == len(mails)
    assert [one.run for one in second.walked] == [one.run for one in first.walked]
    assert all(one.already for one in second.walked) and len(desk.rows(tenant)) == len(mails)


def test_small_mails_around_a_large_one_are_walked(desk: Desk) -> None:
    """Large parts lie in the object bucket, and what is over the limit is refused in words at the door."""
    tenant = desk.new_tenant()
    part = "--b\nContent-Type: application/pdf; name=plan.pdf\nContent-Transfer-Encoding: base64\n\n"
    data = ("A" * 76 + "\n") * (12 * MIB * 4 // 3 // 76)
    body = f"--b\n\nThe plan for order 12.\n{part}{data}--b--\n"
    large = mail("MIME-Version: 1.0", body, content='multipart/mixed; boundary="b"', message_id="<large@c.example>")
    text = mail(message_id="<long@c.example>", body="long words " * (MIB // 11))
    huge = mail(message_id="<huge@c.example>", body="x" * (30 * MIB))
    small = [mail(message_id=f"<s{n}@c.example>", subject=f"small {n}") for n in range(4)]
    fed = desk.walk(small[0], large, small[1], text, small[2], huge, small[3], tenant=tenant)
    assert [s.reason for s in fed.skipped] == ["The mail is too large: 30.0 MiB, 25 MiB at most."]
    assert [one.row["status"] for one in fed.walked] == ["draft_ready"] * 6
    with_file, long_text = fed.walked[1], fed.walked[3]
    (attachment,) = with_file.start.mail.attachments
    kept = with_file.start.objects[attachment.digest]
    assert kept.size == attachment.size > 11 * MIB and len(desk.object(kept.name)) == kept.size
    assert long_text.start.objects["text"].size > MIB - 20
    for one in fed.walked:
        assert all(len(json.dumps(e.data)) < 256 * 1024 for e in one.history)
    again = desk.walk(large, tenant=tenant)
    assert [one.already for one in again.walked] == [True]


def test_a_json_message_over_one_mebibyte_is_walked(desk: Desk) -> None:
    """One byte more than a NATS message holds, between two small ones."""
    lines = []
    for name, text in (("one", "Where is it?"), ("big", ""), ("two", "Where is it?")):
        lines.append({"message_id": name, "from": "ana@customer.example", "subject": name, "text": text})
    lines[1]["text"] = "y" * (MIB + 1 - len(json.dumps(lines[1])))
    assert len(json.dumps(lines[1])) == MIB + 1
    fed = desk.walk("\n".join(json.dumps(line) for line in lines).encode(), suffix="jsonl")
    assert fed.skipped == []
    assert listed([one.row for one in fed.walked]) == dict.fromkeys(("one", "big", "two"), "draft_ready")


def test_bytes_that_a_database_refuses_are_stored_in_another_form(desk: Desk) -> None:
    """NUL and lone surrogates in headers, bodies and nested JSON; the read models move on, also from zero."""
    tenant = desk.new_tenant()
    nul = mail(subject="a\0b", body="half\0text\n", message_id="<n1@customer.example>")
    form = mail("MIME-Version: 1.0", "--z\nContent-Type: text/html\n\nhalf<b>\0</b>text\n--z\nContent-Type: a/b; "
                'name="a\0b.txt"\n\n\0\0\n--z--\n', content="multipart/mixed; boundary=z", message_id="<n2@c.example>")  # fmt: skip
    fed = desk.walk(nul, form, *case_mail("FB-17"), GOOD, tenant=tenant)
    assert [one.row["status"] for one in fed.walked[:2]] == ["draft_ready"] * 2
    assert fed.walked[-1].row["status"] == "draft_ready"
    for one in fed.walked:
        said = json.dumps([one.row, [e.data for e in one.history]], default=str)
        assert "\\u0000" not in said and "\\ud8" not in said
    kept = fed.walked[0].start.objects["raw"]
    assert b"half\0text" in desk.object(kept.name)
    hostile = {
        "from": "ana@customer.example", "subject": "a\0b \ud800", "text": "half\0text", "message_id": "j\0\udfff",
        "headers": {"X-A\0b": "c\0d", "X-\ud800": "\ud83d"}, "attachments": [{"name": "\0", "content": "AA=="}],
        "to": ["a\0@b.example", "\ud800@c.example"],
    }  # fmt: skip
    escaped = json.dumps(hostile).encode()
    fed = desk.walk(escaped, json.dumps({**hostile, "message_id": "j2"}).encode(), suffix="json", tenant=tenant)
    assert fed.skipped == [] and len(fed.walked) == 2
    shell = Shell(desk.directory)
    before = {row["run"]: row["status"] for row in desk.rows(tenant)}
    shell.run("projections", "rebuild")
    assert {row["run"]: row["status"] for row in desk.rows(tenant)} == before
    assert shell.json("projections", "verify")["differences"] in ([], 0)


DATES = (
    ("", False),
    ("Mon, 01 Jan 2018 10:00:00 +0000", True),
    ("Thu, 01 Jan 2099 10:00:00 +0000", True),
    ("Mon, 02 Mar 2026 09:00:00 +0000 " + "(x)" * 50, None),
    ("Fri, 99 Foo 20266 99:99:99 +9999", None),
    ("1 Jan 2026 10:00", None),
    ("Mon, 01 Jan 0000 00:00:00 +0000", None),
    ("Thu, 01 Jan 1970 00:00:00 +2400", None),
    ("Tue, 31 Dec 9999 23:59:59 -2359", True),
    ("٠١ يناير ٢٠٢٦ ١٠:٠٠", None),
)


def test_order_goes_by_arrival_whatever_a_mail_claims(desk: Desk) -> None:
    """A claimed date that is off by more than a day is marked; none raises, and none leaves a hole in the order."""
    tenant = desk.new_tenant()
    for number, (date, _) in enumerate(DATES):
        head = f"Date: {date}" if date else ""
        desk.one(mail(head, subject=f"mail {number}", message_id=f"<d{number}@customer.example>"), tenant=tenant)
    rows = desk.rows(tenant)
    assert [row["subject"] for row in rows] == [f"mail {n}" for n in reversed(range(len(DATES)))]
    assert all(isinstance(row["received_at"], int) for row in rows)
    for row, (date, off) in zip(reversed(rows), DATES, strict=True):
        if off is not None:
            assert (DATE_OFF in (row["remarks"] or ())) is off, date
        assert row["status"] == "draft_ready"
    assert rows[-2]["date"].startswith("2018-01-01") and rows[-3]["date"].startswith("2099")


def test_the_object_names_of_two_mails_under_one_id_are_apart() -> None:
    """A copy under the same Message-ID never overwrites what was kept of the first."""
    first, second = (
        mail_start(mail(body=text, content="text/plain; charset=nowhere"), tenant="t", mailbox="inbox", received_at=1)
        for text in ("one\n", "two\n")
    )
    assert first.key == second.key and not first.objects.keys() & second.objects.keys()

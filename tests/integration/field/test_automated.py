"""Mail that no person waits behind: stored, threaded, visible, told apart, never answered."""

import pytest
from tests.integration.field.desk import STEPS, Desk
from tests.integration.field.mails import VOUCHED, case_mail, mail, replaced

AWAY = mail(
    "Return-Path: <>\nAuto-Submitted: auto-replied\nIn-Reply-To: <out-1@shop.example>",
    "I am away until 9 March.\n",
    subject="Automatic reply: Your order",
    sender="Bo Berg <bo@customer.example>",
    message_id="<ooo-1@customer.example>",
)
MARKS = (
    "Auto-Submitted: auto-generated; reason=x",
    "Auto-Submitted: AUTO-REPLIED (holiday)",
    "Precedence: bulk",
    "Precedence: auto_reply",
    "Precedence:\tlist",
    "List-Id: <news.customer.example>",
    "X-Autoreply: yes",
    "X-Auto-Response-Suppress: All",
    "Return-Path: <>",
    "Return-Path:   < >",
)
PERSONS = ("Auto-Submitted: no", "Auto-Submitted: No ; x=y", "X-Auto-Response-Suppress: none", "Return-Path: <a@b.c>")


def test_marked_mails_end_archived_and_walk_no_step(desk: Desk) -> None:
    """The note itself and each mark alone; all stand in the list with the reason."""
    tenant = desk.new_tenant()
    marked = [mail(head, message_id=f"<a{n}@customer.example>", subject=head) for n, head in enumerate(MARKS)]
    fed = desk.walk(AWAY, *marked, *(replaced(m, "X-Case", "file") for m in case_mail("FB-05")), tenant=tenant)
    for one in fed.walked:
        assert (one.row["status"], one.row["archive_reason"], one.steps) == ("archived", "automated", [])
        assert one.row["fields"]["automated"] and one.row["outcome"] is not None
        assert one.asked == []
    assert {row["run"] for row in desk.rows(tenant)} == {one.run for one in fed.walked}
    answered = desk.one(mail(message_id="<out-1@shop.example>", sender="bo@customer.example"), tenant=tenant)
    assert answered.row["thread"] == fed.walked[0].row["thread"]


def test_a_person_is_answered(desk: Desk) -> None:
    """Also where a mail says of itself that nothing submitted it by itself."""
    persons = [mail(head, message_id=f"<p{n}@customer.example>") for n, head in enumerate(PERSONS)]
    for one in desk.walk(*persons).walked:
        assert one.row["status"] == "draft_ready" and one.steps == STEPS


def test_what_we_sent_ourselves_is_not_answered(desk: Desk) -> None:
    """A copy of our own mail ends archived."""
    one = desk.one(mail(VOUCHED.replace("customer", "shop"), sender="Help <HELP@shop.example>"))
    assert (one.row["status"], one.row["archive_reason"]) == ("archived", "automated")


def bounce(
    action: str = "failed", status: str = "5.1.1", recipient: str = "ada@customer.example", *, number: int
) -> bytes:
    """A delivery report about a mail that names `<out-7@shop.example>`."""
    lines = ["Reporting-MTA: dns; mx.customer.example", ""]
    lines += [f"Final-Recipient: rfc822; {recipient}"] if recipient else []
    lines += [f"Action: {action}", f"Status: {status}", f"Diagnostic-Code: smtp; 550 {status} no such user"]
    body = (
        "--r\n\nYour mail could not be delivered.\n--r\nContent-Type: message/delivery-status\n\n"
        + "\n".join(lines)
        + "\n\n--r\nContent-Type: message/rfc822\n\nFrom: help@shop.example\nTo: ada@customer.example\n"
        "Subject: Re: order 12\nMessage-ID: <out-7@shop.example>\n\nHello.\n--r--\n"
    )
    return mail(
        "MIME-Version: 1.0",
        body,
        content='multipart/report; report-type=delivery-status; boundary="r"',
        sender="Mail Delivery <mailer-daemon@customer.example>",
        subject="Undelivered mail",
        message_id=f"<bounce-{number}@customer.example>",
    )


def test_a_delivery_report_says_what_became_of_which_mail(desk: Desk) -> None:
    """Code, recipient and the mail that it is about stand in the run; delayed is not failed; no other run changes."""
    tenant = desk.new_tenant()
    before = desk.one(mail(message_id="<ask@customer.example>"), tenant=tenant)
    reports = [
        bounce(number=1),
        bounce("delayed", "4.4.1", number=2),
        bounce(recipient="", number=3),
        bounce("Failed (permanent)", "5.2.2 (mailbox full)", number=4),
        bounce("oddly", "4.7.1", number=5),
    ]
    fed = desk.walk(*reports, tenant=tenant)
    found = [one.start.mail.delivery for one in fed.walked]
    assert [(d.action, d.status, d.recipient) for d in found if d] == [
        ("failed", "5.1.1", "ada@customer.example"),
        ("delayed", "4.4.1", "ada@customer.example"),
        ("failed", "5.1.1", ""),
        ("failed", "5.2.2", "ada@customer.example"),
        ("delayed", "4.7.1", "ada@customer.example"),
    ]
    assert {d.original_id for d in found if d} == {"out-7@shop.example"}
    for one in fed.walked:
        assert (one.row["status"], one.row["archive_reason"], one.steps) == ("archived", "automated", [])
    said = {row["subject"]: row["automated"] for row in desk.rows(tenant) if row["run"] == fed.walked[0].run}
    assert said == {"Undelivered mail": "a delivery report: failed (5.1.1) for ada@customer.example"}
    (after,) = desk.now(desk.models.message(before.run, tenant=tenant))
    assert (after["version"], after["status"]) == (before.row["version"], "draft_ready")


@pytest.mark.parametrize("kind", ["message/rfc822", "application/octet-stream; name=bounce.eml"])
def test_a_bounce_that_a_person_forwards_is_answered(desk: Desk, kind: str) -> None:
    """It is inside the person's mail, and says nothing about that mail itself."""
    inner = bounce(number=9).decode().replace("\r\n", "\n")
    body = f"--f\n\nWhy did I get this?\n--f\nContent-Type: {kind}\n\n{inner}\n--f--\n"
    one = desk.one(mail("MIME-Version: 1.0", body, content="multipart/mixed; boundary=f"))
    assert one.row["status"] == "draft_ready" and one.start.mail.delivery is None

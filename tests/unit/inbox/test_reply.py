"""The reply as it will leave: to whom, and in which conversation. Whole mails, as strangers write them."""

import pytest
from tests.unit.inbox.mails import raw

from waybook.engine.run import Published, Run
from waybook.events.subjects import RunKey
from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.intake.subject import reply_subject
from waybook.inbox.reply import MOST_REFERENCES, Reply, reply_of
from waybook.inbox.starting import mail_start

ANN = "From: Ann <ann@x.example>\nSubject: Order\n"


def answered(head: str) -> Reply:
    """What a draft to a mail with these header lines becomes."""
    start = mail_start(raw(head, "Hello", "utf-8"), tenant="main", mailbox="inbox", received_at=1)
    assert start.payload.body is not None
    run = Run(key=RunKey("main", "inbox", "r"), agent="inbox", definition="d", state="draft_ready", started_at=1)
    run.fields["draft_response"] = "Yes."
    run.log.append(Published("1.1", 0, "MailReceived", 1, start.payload.body))
    reply = reply_of(run)
    assert reply is not None
    return reply


@pytest.mark.parametrize(
    ("head", "to"),
    [
        ("From: Ann <ann@x.example>\nReply-To: Bob <bob@evil.example>", ("ann@x.example",)),
        ("From: =?utf-8?b?w4RubmU=?= <ann@münchen.example>", ("ann@xn--mnchen-3ya.example",)),
        ('From: "Ann\n Bcc: eve@evil.example" <ann@x.example>', ("ann@x.example",)),
        ('From: "boss@ours.example" <ann@x.example>', ("ann@x.example",)),
        ("From: Ann <>", ()),
        ("From: Ann", ()),
        ("Subject: nobody", ()),
        ("From: ann@x.example, bob@y.example", ("ann@x.example",)),
    ],
)
def test_it_goes_to_the_author_alone(head: str, to: tuple[str, ...]) -> None:
    """Whatever Reply-To, names and folded lines ask for; the host as servers write it; nobody where there is nobody."""
    assert answered(head).to == to


@pytest.mark.parametrize(
    ("head", "in_reply_to", "references"),
    [
        ("Message-ID: <a@x>", "<a@x>", "<a@x>"),
        ("Message-ID: <b@x>\nIn-Reply-To: <a@x>", "<b@x>", "<a@x> <b@x>"),
        ("Message-ID: <c@x>\nReferences: <a@x>\n <b@x>\n\t<a@x>", "<c@x>", "<a@x> <b@x> <c@x>"),
        ("Message-ID: < c@x\n >\nReferences: junk <a@x", "<c@x>", "<a@x> <c@x>"),
        ("Message-ID: <größe@x>\nReferences: <a@x> <größe@x>", None, "<a@x>"),
        (f"Message-ID: <{'q' * 1_000}@x>", None, None),
        ("Message-ID: <a@x>\n\tBcc: eve@evil.example", "<a@x>", "<a@x>"),
        ("Subject: none", None, None),
    ],
)
def test_it_stands_in_its_conversation(head: str, in_reply_to: str | None, references: str | None) -> None:
    """Ids that no header may hold are left out; each stands once."""
    reply = answered(f"{ANN}{head}")
    assert (reply.in_reply_to, reply.references) == (in_reply_to, references)


def test_of_a_long_conversation_the_first_mail_and_the_last_are_named() -> None:
    ids = [f"<{n}@x>" for n in range(60)]
    named = (answered(f"{ANN}Message-ID: <last@x>\nReferences: {' '.join(ids)}").references or "").split()
    assert len(named) == MOST_REFERENCES and named[0] == "<0@x>" and named[-2:] == ["<59@x>", "<last@x>"]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("Order", "Re: Order"),
        ("Re: AW: re[2]: Order", "Re: Order"),
        ("=?utf-8?q?Gr=C3=B6=C3=9Fe?=", "Re: Größe"),
        ("=?utf-8?q?Order=0D=0ABcc=3A_eve=40evil=2Eexample?=", "Re: Order Bcc: eve@evil.example"),
        ("", "Re: your message"),
    ],
)
def test_its_subject_is_one_line_with_one_mark(subject: str, expected: str) -> None:
    """Also where a line end was hidden in an encoded word."""
    assert reply_subject(parse_mail(raw(f"From: ann@x.example\nSubject: {subject}")).subject) == expected


def test_it_is_marked_as_automatic() -> None:
    """So that machines do not answer it (RFC 3834)."""
    assert answered(ANN).params()["auto_submitted"] == "auto-replied"

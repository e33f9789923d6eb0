"""A mail's start fits into a commit, whatever the mail is made of, and nothing of the mail is lost."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waybook.inbox.events import MailReceived
from waybook.inbox.starting import EVENT_LIMIT, MailStart, mail_start

HEAD = b"From: ann@x.example\nSubject: hello\nMessage-ID: <1@x.example>\nMIME-Version: 1.0\n"


def _alternative(text: bytes, html: bytes) -> bytes:
    head = HEAD + b"Content-Type: multipart/alternative; boundary=b\n\n"
    return (
        head + b"--b\nContent-Type: text/plain\n\n" + text + b"\n--b\nContent-Type: text/html\n\n" + html + b"\n--b--\n"
    )


def _files(count: int) -> bytes:
    part = b'--b\nContent-Type: application/x\nContent-Disposition: attachment; filename="%s%d.bin"\n\n%d\n'
    parts = b"".join(part % (b"n" * 200, n, n) for n in range(count))
    return HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n" + parts + b"--b--\n"


def _start(raw: bytes) -> tuple[MailStart, MailReceived]:
    start = mail_start(raw, tenant="main", mailbox="inbox", received_at=1)
    return start, msgspec.json.decode(start.payload.body, type=MailReceived)


@pytest.mark.parametrize(
    "raw",
    [
        _alternative(b'"' * 70_000, b"<p>" + b'"' * 70_000),
        _alternative(b"\\" * 70_000, b"<p>" + b"\\" * 70_000),
        _alternative(b"\x01" * 70_000, b"<p>" + b"\x01" * 70_000),
        _alternative("é".encode() * 40_000, b"<p>" + "é".encode() * 40_000),
        HEAD
        + b"".join(b"X-Mailer: " + b'"' * 1900 + b"\nPrecedence: " + b"\x01" * 1900 + b"\n" for _ in range(40))
        + b"\nhi\n",
        _files(3_000),
    ],
    ids=["quotes", "backslashes", "control characters", "two bytes each", "headers", "files"],
)
def test_a_start_never_outgrows_a_commit(raw: bytes) -> None:
    """However its characters are written in JSON and however many parts it has, the start event stays in its limit."""
    start, _ = _start(raw)
    assert len(start.payload.body) <= EVENT_LIMIT


def test_a_text_that_is_cut_is_kept_whole() -> None:
    """The event holds the beginning of a long text, and names the object that holds all of it."""
    start, event = _start(_alternative(b'"' * 70_000, b"<p>short"))
    kept = start.objects[event.objects["text"].name]
    assert kept.decode().strip() == '"' * 70_000
    assert event.mail.text is not None and 0 < len(event.mail.text) < 70_000
    assert kept.decode().startswith(event.mail.text)


def test_a_mail_of_too_many_parts_is_kept_whole_and_says_so() -> None:
    """Where the parts alone would fill a commit, the event lists the first of them and the raw mail is an object."""
    raw = _files(3_000)
    start, event = _start(raw)
    assert start.objects[event.objects["raw"].name] == raw
    assert event.mail.attachments and "kept whole" in event.mail.defects[0]


def test_an_ordinary_mail_is_not_touched() -> None:
    """A mail within the limits stands in its event as it was read, and nothing goes to the object bucket."""
    start, event = _start(_alternative(b'He said "hello".', b"<p>He said &quot;hello&quot;."))
    assert start.objects == {} and event.objects == {}
    assert event.mail.text is not None and event.mail.text.strip() == 'He said "hello".'


SHARDS = (
    b"Content-Type: ", b"multipart/mixed; boundary=a", b"multi\xadpart/mixed; boundary=a", b"te\xed\xa0\x80xt/plain",
    b"text/html; charset=\xff", b"message/delivery-status", b"application/\xd0x; name=\xff\xfe", b"\n", b"\n\n", b"\r", b"--a",
    b"--a--", b"Content-Disposition: attachment; filename*=utf-8''%ff%00", b"From: \xff <a\0@\xed\xb0\x80.x>", b"Subject: =?utf-8?b?/v8=?=",
    b"Message-ID: <\xf0\x9f@\0>", b"Action: \xff", b"Status: 5.\xe91", b"BEGIN:VCALENDAR\nSUMMARY:\xff\0", b"text/calendar",
    b"Authentication-Results: \xff", b"Date: \xff\xfe", b"Reply-To: \xff@\xff", b"References: <\0\xff>", b": \xff", b"\xef\xbb\xbf",
)  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(SHARDS), st.binary(max_size=6)), max_size=30))
@settings(max_examples=300, deadline=None)
def test_no_bytes_keep_a_mail_from_its_start(shards: list[bytes]) -> None:
    """Broken bytes in any place of any header: the start can be stored and read again, without a NUL."""
    start, event = _start(b"".join(shards))
    assert b"\\u0000" not in bytes(start.payload.body)
    assert msgspec.json.decode(msgspec.json.encode(event), type=MailReceived) == event


def test_a_type_that_is_none_counts_as_plain_text() -> None:
    """The words of such a part are read, and what is stored of it holds no bytes that cannot be stored."""
    _, event = _start(HEAD + b"Content-Type: te\xed\xa0\x80xt/html\n\nWhere is order 12?\n")
    assert event.mail.text == "Where is order 12?\n"

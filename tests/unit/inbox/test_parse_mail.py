"""Parsing never raises, and reads what can be read."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.inbox.mails import raw

from waybook.inbox.intake.mail import Address
from waybook.inbox.intake.parse import parse_mail, parse_with_files

HEAD = "From: Ana <ana@customer.example>\nTo: help@shop.example\nSubject: hello\nMessage-ID: <c1@customer.example>"


def text_of(data: bytes) -> str:
    return parse_mail(data).text or ""


@given(st.binary(max_size=2000))
@settings(max_examples=300, deadline=None)
def test_no_bytes_make_it_raise(data: bytes) -> None:
    """Whatever the bytes are, there is a mail, and it can be stored as JSON."""
    msgspec.json.encode(parse_mail(data))


@given(st.lists(st.sampled_from(["Content-Type: multipart/mixed; boundary=a", "--a", "--a--", "", "Content-Type: message/rfc822",
                                 "Content-Transfer-Encoding: base64", "=?utf-8?b?!!?=", "Subject: x", "Content-Type: text/html; charset=idna",
                                 "To: (a):;", "<b>x", "begin 644 a", "Content-Type: application/ms-tnef"]), max_size=40))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_no_structure_makes_it_raise(lines: list[str]) -> None:
    """Structures put together at random are read as well."""
    msgspec.json.encode(parse_mail("\n".join(lines).encode()))


@pytest.mark.parametrize(
    "charset", ["x-mac-nowhere", '""', "X-UNKNOWN", "utf-8;", "us-ascii", "idna", "zlib", "unicode_escape"]
)
def test_charsets_nobody_knows_leave_readable_text(charset: str) -> None:
    """An unknown, empty or dangerous charset is a remark and no reason to lose the words."""
    mail = parse_mail(raw(f'{HEAD}\nContent-Type: text/plain; charset="{charset}"', "Café order 12 is late"))
    assert "order 12 is late" in (mail.text or "")
    assert "Caf" in (mail.text or "")


def test_a_charset_by_its_web_name_is_read_as_browsers_read_it() -> None:
    """GBK bytes under a name that Python does not know."""
    data = raw(f"{HEAD}\nContent-Type: text/plain; charset=X-GBK") + "订单十二".encode("gbk")
    assert text_of(data) == "订单十二"


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: text/plain; name*",
        "To: (team):;",
        "Reply-To: undisclosed-recipients:;",
        "Sender: <<>>",
        "Date: ;;;",
    ],
)
def test_odd_headers_are_kept_out_of_the_way(header: str) -> None:
    """A header that the standard parser falls over costs nothing but itself."""
    mail = parse_mail(raw(f"{HEAD}\n{header}", "Order 15?"))
    assert mail.text == "Order 15?"
    assert mail.author == Address("Ana", "ana@customer.example")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<[a1b2c3@mx.example]>", "[a1b2c3@mx.example]"),
        ("<A.b@C.example>", "A.b@C.example"),
        ("a@b.example", "a@b.example"),
        ("< a@ b.example >", "a@b.example"),
        ("<ok@bad.example>\n\tBcc: spy@bad.example", "ok@bad.example"),
        ("", None),
        ("<>", None),
        ("   ", None),
    ],
)
def test_message_ids_stand_without_blanks_and_brackets(value: str, expected: str | None) -> None:
    """The case stays; an empty id is no id."""
    assert parse_mail(raw(f"From: a@b.example\nMessage-ID: {value}", "x")).message_id == expected


def test_an_id_of_any_length_becomes_one_of_bounded_length() -> None:
    """Two oversized ids still differ."""
    ids = [parse_mail(raw(f"Message-ID: <{'x' * 5000}{n}@b.example>", "x")).message_id for n in (1, 2)]
    assert ids[0] != ids[1] and all(i is not None and len(i) < 100 for i in ids)


def test_a_subject_is_one_line_whatever_was_encoded_into_it() -> None:
    """Encoded line breaks and folds must not carry a header into the answer."""
    assert (
        parse_mail(raw("Subject: =?utf-8?q?Hi=0D=0ABcc=3A_spy=40bad=2Eexample?=")).subject == "Hi Bcc: spy@bad.example"
    )
    assert parse_mail(raw("Subject: Quarterly plan\n & status")).subject == "Quarterly plan & status"


def test_encoded_words_cut_inside_a_character_are_joined() -> None:
    """Senders cut by bytes."""
    assert parse_mail(raw("Subject: =?utf-8?b?w6Q=?= =?utf-8?q?=C3?=\n =?utf-8?q?=B6?=")).subject == "äö"


def test_nul_and_lone_surrogates_never_leave_the_parser() -> None:
    """No store takes them."""
    mail = parse_mail(b"From: a@b.example\r\nSubject: a\x00b\r\n\r\nhalf\x00text\xed\xa0\x80")
    assert "\0" not in mail.subject + (mail.text or "")
    msgspec.json.encode(mail)


BOUNDARY = {
    "missing parameter": "Content-Type: multipart/mixed\n\n--x\n\nOrder 19 never came.\n--x--\n",
    "final line missing": 'Content-Type: multipart/mixed; boundary="x"\n\n--x\n\nOrder 19 never came.\n',
    "prefix": 'Content-Type: multipart/mixed; boundary="foo"\n\n--foo\nContent-Type: multipart/mixed; boundary="foo_bar"\n\n--foo_bar\n\n'
    "Order 19 never came.\n--foo_bar--\n--foo--\n",
    "trailing blank": 'Content-Type: multipart/mixed; boundary="x "\n\n--x \n\nOrder 19 never came.\n--x --\n',
    "never used": 'Content-Type: multipart/mixed; boundary="y"\n\n--x\n\nOrder 19 never came.\n--x--\n',
    "reused": 'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: multipart/mixed; boundary="x"\n\n--x\n\nFirst text.\n'
    "--x--\n--x\n\nOrder 19 never came.\n--x--\n",
    "after the end": 'Content-Type: multipart/mixed; boundary="x"\n\n--x\n\nFirst text.\n--x--\n\nOrder 19 never came.\n',
}


@pytest.mark.parametrize("body", BOUNDARY.values(), ids=BOUNDARY.keys())
def test_no_part_vanishes_with_its_boundary(body: str) -> None:
    """Every sentence is in what the scan gets, wherever the boundaries are."""
    mail = parse_mail(f"{HEAD}\nMIME-Version: 1.0\n{body}".encode())
    everything = "\n".join([mail.text or "", *mail.other_text])
    assert "Order 19 never came." in everything
    assert "First text." in everything or "First text." not in body


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (
            "--z\nContent-Type: text/plain\n\n\n--z\nContent-Type: text/html\n\n<div>Please cancel order 12</div>\n--z--\n",
            "html",
        ),
        ("--z\nContent-Type: text/html\n\nPlease cancel order 12\n--z--\n", "html"),
        ("--z\nContent-Type: text/html\n\n<p>&nbsp; </p>\n--z--\n", "none"),
        (
            "--z\nContent-Type: image/png\nContent-ID: <1>\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--z--\n",
            "none",
        ),
    ],
)
def test_the_readable_body_is_found_or_said_to_be_missing(body: str, source: str) -> None:
    """An empty text part hides no HTML, and blanks are no text."""
    mail = parse_mail(f"{HEAD}\nContent-Type: multipart/alternative; boundary=z\n\n{body}".encode())
    assert mail.body_source == source
    assert ("no readable text" in mail.defects) == (source == "none")


def test_an_invitation_is_read_with_title_time_and_organiser() -> None:
    """A mail that is only a calendar part is no empty mail."""
    lines = [
        "BEGIN:VCALENDAR", "VERSION:2.0", "METHOD:REQUEST", "BEGIN:VEVENT", "UID:u1", "DTSTART;TZID=Europe/Berlin:20260310T090000",
        "SUMMARY:Order 12", "  call", "ORGANIZER:mailto:ana@customer.example", "END:VEVENT", "END:VCALENDAR",
    ]  # fmt: skip
    mail = parse_mail(raw(f"{HEAD}\nContent-Type: text/calendar; method=REQUEST", "\n".join(lines)))
    assert mail.invitation is not None and mail.invitation.title == "Order 12 call"
    assert (mail.invitation.zone, mail.invitation.organizer) == ("Europe/Berlin", "ana@customer.example")
    assert mail.body_source == "calendar" and "Order 12 call" in (mail.text or "")
    assert mail.automated is None


def test_answers_to_invitations_are_automated() -> None:
    """Nobody waits for an answer to `accepted` or `cancelled`."""
    for method in ("REPLY", "CANCEL"):
        text = f"BEGIN:VCALENDAR\nMETHOD:{method}\nBEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR"
        assert (
            parse_mail(raw(f"{HEAD}\nContent-Type: text/calendar", text)).automated == f"a calendar notice ({method})"
        )


def test_attachments_are_named_measured_and_kept_aside() -> None:
    """Their bytes are found by digest; names lose their folders."""
    body = (
        '--z\n\nSee file.\n--z\nContent-Type: application/pdf; name="../../etc/bill.pdf"\nContent-Disposition: attachment\n'
        "Content-Transfer-Encoding: base64\n\naGVsbG8=\n--z--\n"
    )
    mail, files = parse_with_files(f"{HEAD}\nContent-Type: multipart/mixed; boundary=z\n\n{body}".encode())
    (item,) = mail.attachments
    assert (item.name, item.content_type, item.size) == ("bill.pdf", "application/pdf", 5)
    assert files[item.digest] == b"hello"


def test_a_nested_mail_is_a_file_and_its_words_are_scanned() -> None:
    """They are not the sender's own words."""
    inner = "From: x@y.example\nSubject: inner\n\nThe inner words."
    mail = parse_mail(
        f"{HEAD}\nContent-Type: multipart/mixed; boundary=z\n\n--z\n\nOuter.\n--z\nContent-Type: message/rfc822\n\n{inner}\n--z--\n".encode()
    )
    assert mail.text == "Outer." and any("The inner words." in t for t in mail.other_text)
    assert mail.attachments[0].name == "inner.eml"


def test_depth_and_number_of_parts_are_bounded() -> None:
    """Ten thousand nested parts are a defect, not a crash."""
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(3000))
    assert parse_mail(f"{HEAD}\n{deep}\n\nend".encode()).defects
    wide = "--z\n\npart\n" * 3000
    mail = parse_mail(f"{HEAD}\nContent-Type: multipart/mixed; boundary=z\n\n{wide}--z--".encode())
    assert "too many or too deeply nested parts" in mail.defects


@pytest.mark.parametrize(
    ("date", "stamp"),
    [
        ("Mon, 02 Mar 2026 09:00:00 +0000", 1772442000000),
        ("1 Jan 2026 10:00", 1767261600000),
        ("Fri, 99 Foo 20266 99:99:99 +9999", None),
        ("x" * 181, None),
        ("Thu, 1 Jan 1920 00:00:00 +0000", None),
        ("", None),
    ],
)
def test_a_claimed_date_is_read_or_none(date: str, stamp: int | None) -> None:
    """Nothing but a number or None comes out."""
    assert parse_mail(raw(f"From: a@b.example\nDate: {date}", "x")).date == stamp


def test_a_damaged_winmail_dat_says_so() -> None:
    """Garbage under the TNEF type is kept as a file, with the remark that it could not be read."""
    body = "--z\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\neJ8+IgAA\n--z--\n"
    mail = parse_mail(f"{HEAD}\nContent-Type: multipart/mixed; boundary=z\n\n{body}".encode())
    assert any("winmail.dat" in d for d in mail.defects)
    assert mail.attachments[0].content_type == "application/ms-tnef"


def test_a_from_without_an_address_keeps_its_name() -> None:
    """It is shown, and nobody can be answered."""
    assert parse_mail(raw("From: MAILER-DAEMON", "x")).author == Address("MAILER-DAEMON", "")

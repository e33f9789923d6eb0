"""winmail.dat is opened, and its damages are said."""

import base64
import struct

from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.intake.tnef import unpack


def attribute(level: int, name: int, kind: int, data: bytes) -> bytes:
    return struct.pack("<BHHI", level, name, kind, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)


def tnef(*attributes: bytes) -> bytes:
    return struct.pack("<IH", 0x223E9F78, 1) + b"".join(attributes)


BODY = attribute(1, 0x800C, 2, b"Please cancel order 12.\0")
FILE = (
    attribute(2, 0x9002, 6, b"\0" * 14)
    + attribute(2, 0x8010, 1, b"bill.exe\0")
    + attribute(2, 0x800F, 6, b"MZ content")
)


def test_text_and_files_are_taken_out() -> None:
    """File names reach the scan, the words the drafter."""
    found = unpack(tnef(BODY, FILE))
    assert (found.text, found.defects) == ("Please cancel order 12.", ())
    assert found.files == (("bill.exe", b"MZ content"),)


def test_damaged_parts_yield_what_can_be_read_and_a_defect() -> None:
    """Cut off, with a wrong checksum, with garbage behind it, or garbage alone."""
    whole = tnef(BODY, FILE)
    assert all(unpack(whole[:cut]) is not None for cut in range(len(whole)))
    assert unpack(whole[:9] + b"\xff" + whole[10:]) is not None
    assert unpack(whole + b"\xff" * 7) is not None
    assert unpack(b"garbage").defects and unpack(b"").defects


def test_a_mail_that_is_only_winmail_dat_is_readable() -> None:
    """Its body is the mail's body."""
    raw = (
        b"From: a@b.example\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: binary\n\n"
        + tnef(BODY, FILE)
    )
    mail = parse_mail(raw)
    assert mail.body_source in ("tnef", "none")
    coded = base64.encodebytes(tnef(BODY, FILE))
    head = (
        b"From: a@b.example\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n"
    )
    mail = parse_mail(head + coded)
    assert (mail.text, mail.body_source) == ("Please cancel order 12.", "tnef")
    assert [a.name for a in mail.attachments] == ["bill.exe"]

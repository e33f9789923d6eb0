"""Every file that is looked at is taken in or skipped with a sentence."""

import os
from pathlib import Path

import pytest

from waybook.inbox.intake.json_mail import mail_bytes
from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.intake.sources import Item, Skipped, read_sources

MAIL = b"From: a@b.example\nSubject: s\nMessage-ID: <1@b.example>\n\nbody\n"


def found(*paths: Path, limit: int = 1000) -> list[Item | Skipped]:
    return list(read_sources(paths, limit))


def reason(item: Item | Skipped) -> str:
    assert isinstance(item, Skipped)
    return item.reason


def test_a_folder_is_read_to_the_bottom_in_order(tmp_path: Path) -> None:
    """Each file once, links into themselves said, hidden files named."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a.eml").write_bytes(MAIL)
    (tmp_path / "b" / "c.eml").write_bytes(MAIL)
    (tmp_path / ".hidden").write_bytes(MAIL)
    os.symlink(tmp_path, tmp_path / "b" / "loop")
    items = found(tmp_path)
    assert [i.path for i in items if isinstance(i, Item)] == [str(tmp_path / "a.eml"), str(tmp_path / "b" / "c.eml")]
    assert {reason(i) for i in items if isinstance(i, Skipped)} == {
        "Hidden files and folders are left out; name it to take it in.",
        "The folder contains itself through a link.",
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "The file is empty."),
        (b" \n\n", "The file holds nothing but blanks."),
        (b"just some words\n", "This is not a mail: no header line such as From or Subject was found."),
        (b"\x7fELF\x02\x01\x01\0\0\0", "This is not a mail: no header line such as From or Subject was found."),
        (b"\x1f\x8b\x08\0", "The file is packed (gzip); unpack it first."),
        (MAIL + b"x" * 2000, "The mail is too large: 0.0 MiB, 0 MiB at most."),
    ],
)
def test_what_is_no_mail_is_skipped_with_a_reason(tmp_path: Path, content: bytes, expected: str) -> None:
    """A sentence, never an exception."""
    path = tmp_path / "x"
    path.write_bytes(content)
    assert reason(found(path)[0]) == expected


def test_missing_unreadable_and_odd_files_are_said(tmp_path: Path) -> None:
    """Also what is no file at all."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path / "gone", tmp_path / "link")
    assert [reason(i) for i in found(tmp_path / "nothing", tmp_path / "pipe", tmp_path / "link")] == [
        "There is no such file or folder.",
        "This is neither a file nor a folder.",
        "The link points to nothing.",
    ]


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A sparse file of 3 GB takes no memory and no time."""
    path = tmp_path / "huge.eml"
    with path.open("wb") as file:
        file.write(MAIL)
        file.truncate(3 * 1024**3)
    assert reason(next(iter(read_sources([path])))) == "The mail is too large: 3072.0 MiB, 25 MiB at most."


def test_an_mbox_is_split_at_its_postmarks_only(tmp_path: Path) -> None:
    """A line of text that begins with From does not divide; quoted ones are restored; a large mail is left out."""
    path = tmp_path / "box"
    mark = b"From a@b.example Mon Mar  2 09:00:00 2026\n"
    path.write_bytes(
        mark
        + MAIL
        + b"From here on\n>From quoted\n\nFrom nowhere\n\n"
        + mark
        + MAIL
        + b"x" * 2000
        + b"\n\n"
        + mark
        + MAIL
        + b"\n"
    )
    first, second, third = found(path)
    assert isinstance(first, Item) and first.raw == MAIL + b"From here on\nFrom quoted\n\nFrom nowhere\n"
    assert reason(second).startswith("The mail is too large")
    assert isinstance(third, Item) and (third.path, third.raw) == (f"{path}#3", MAIL)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_mbox_is_split_whatever_ends_its_lines(tmp_path: Path, end: bytes) -> None:
    """Also one whose lines end as they did on old Macs, and with a line longer than what is read at once."""
    path = tmp_path / "box"
    mail = b"From: a@b.example\nSubject: old\n\nHello.\n" + b"y" * 1_500_000 + b"\n"
    one = b"From a@b.example Mon Mar  2 09:00:00 2026\n" + mail + b"\n"
    path.write_bytes((one + one).replace(b"\n", end))
    raws = [item.raw for item in read_sources([path]) if isinstance(item, Item)]
    assert raws == [mail.replace(b"\n", end)] * 2


@pytest.mark.parametrize("name", ["bounce.eml", "BOUNCE.EML", "cur/1:2,S", "new/1"])
def test_a_file_that_is_one_mail_by_its_name_or_place_is_never_divided(tmp_path: Path, name: str) -> None:
    """A bounce keeps the mail that it returns, postmark and all; the line in front of the whole is left off."""
    mark = b"From a@b.example Mon Mar  2 09:00:00 2026\n"
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mark + MAIL + b"\n" + mark + MAIL)
    (item,) = found(path)
    assert isinstance(item, Item) and (item.path, item.raw) == (str(path), MAIL + b"\n" + mark + MAIL)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_line_in_front_of_a_mail_ends_as_its_lines_do(tmp_path: Path, end: bytes) -> None:
    """Files of old Macs have a lone CR; the mail behind the postmark is kept whole."""
    mail = MAIL.replace(b"\n", end)
    path = tmp_path / "bounce.eml"
    path.write_bytes(b"From a@b.example Mon Mar  2 09:00:00 2026" + end + mail)
    (item,) = found(path)
    assert isinstance(item, Item) and item.raw == mail


def test_a_maildir_leaves_out_what_is_still_being_delivered(tmp_path: Path) -> None:
    """Its folders below are read as well."""
    for name in ("cur", "new", "tmp", ".Sent/cur", ".Sent/new"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "1:2,S").write_bytes(MAIL)
    items = found(tmp_path)
    assert sum(isinstance(i, Item) for i in items) == 4
    assert [reason(i) for i in items if isinstance(i, Skipped)] == [
        "The mail is still being delivered (it lies in the Maildir's tmp)."
    ]


def test_json_is_taken_as_object_array_and_lines(tmp_path: Path) -> None:
    """Each with its number, each wrong entry with its reason."""
    one, many, lines = tmp_path / "1.json", tmp_path / "2.json", tmp_path / "3.jsonl"
    one.write_text('{"from": "a@b.example", "subject": "s", "text": "t"}')
    many.write_text('[{"subject": "a"}, {"other": 1}, 5]')
    lines.write_text('{"text": "a"}\n\n{broken\n{"html": "<p>b</p>"}\n')
    items = found(one, many, lines)
    assert [i.path.rpartition("/")[2] for i in items] == [
        "1.json",
        "2.json#1",
        "2.json#2",
        "2.json#3",
        "3.jsonl#1",
        "3.jsonl#3",
        "3.jsonl#4",
    ]
    assert [isinstance(i, Item) for i in items] == [True, True, False, False, True, False, True]


def test_json_lines_over_the_limit_are_streamed(tmp_path: Path) -> None:
    """Only the long line is left out."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a"}\n' + '{"text": "' + "b" * 2000 + '"}\n' + '{"text": "c"}\n')
    assert [isinstance(i, Item) for i in found(path)] == [True, False, True]


def test_a_json_mail_reads_back_as_it_was_given() -> None:
    """Nothing in a field can become a header or a part, and the bytes are the same every time."""
    fields = {
        "from": {"name": "Zoë", "email": "zoe@x.example"},
        "to": ["a@x.example", "b@x.example"],
        "subject": "Hi\r\nBcc: spy@x.example =?utf-8?q?x?=",
        "text": "Grüße \ud800\0",
        "html": "<p>Grüße</p>",
        "messageId": "<1@x.example>",
        "headers": {"Auto-Submitted": "no", "Bad Name": "x", "Content-Type": "text/evil"},
        "attachments": [{"name": 'a"b.txt', "content_type": "text/plain", "content": "aGk="}],
    }
    data = mail_bytes(fields)
    assert data is not None and data == mail_bytes(fields)
    mail = parse_mail(data)
    assert mail.subject == "Hi Bcc: spy@x.example =?utf-8?q?x?="
    assert (str(mail.author), len(mail.to), mail.message_id) == ("Zoë <zoe@x.example>", 2, "1@x.example")
    assert (mail.text or "").startswith("Grüße") and mail.html == "<p>Grüße</p>"
    assert [a.size for a in mail.attachments] == [2]


def test_a_json_array_without_mails_is_skipped_once(tmp_path: Path) -> None:
    """One sentence is enough."""
    path = tmp_path / "x.json"
    path.write_text('["a", "b", {"c": 1}]')
    (only,) = found(path)
    assert reason(only).startswith("This JSON array holds no mails")

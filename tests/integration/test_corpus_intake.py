"""Intake against real mails: none raises, automated ones are told from people.

The corpus is not part of the repository: `WAYBOOK_TEST_DATA` names the folder that holds `mail-corpus.tar.xz`, by
default `../shared/data` beside the repository. Without it these tests are skipped.
"""

import csv
import json
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from waybook.inbox.intake.canonical import content_digest, mail_run_id
from waybook.inbox.intake.json_mail import mail_bytes
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.intake.quotes import split_reply
from waybook.inbox.intake.sources import Item, Skipped, read_sources
from waybook.inbox.scan.scan import scan_text

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = Path(os.environ.get("WAYBOOK_TEST_DATA", ROOT.parent / "shared" / "data")) / "mail-corpus.tar.xz"
pytestmark = pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"the mail corpus is not there ({ARCHIVE.name})")
_AUTO_SUBMITTED = re.compile(rb"(?im)^Auto-Submitted:[ \t]*(?!no\b)[a-z]")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked corpus, for as long as the tests of this module run."""
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "corpus"


@pytest.fixture(scope="module")
def taken(corpus: Path) -> list[Item | Skipped]:
    return list(read_sources([corpus]))


@pytest.fixture(scope="module")
def mails(taken: list[Item | Skipped]) -> list[tuple[Item, ParsedMail]]:
    return [(item, parse_mail(item.raw)) for item in taken if isinstance(item, Item)]


def as_mail(text: str) -> ParsedMail:
    raw = mail_bytes({"from": "Ann <ann@x.example>", "subject": "Question", "text": text})
    assert raw is not None
    return parse_mail(raw)


def benign(corpus: Path) -> Iterator[str]:
    """BIPIA's mails without an attack."""
    for name in ("test", "train"):
        for line in (corpus / "bipia" / "email" / f"{name}.jsonl").read_text().splitlines():
            yield str(json.loads(line)["context"])


def test_every_file_is_taken_or_skipped_with_a_reason(corpus: Path, taken: list[Item | Skipped]) -> None:
    """No file goes missing and none is both."""
    items = {i.path.partition("#")[0] for i in taken if isinstance(i, Item)}
    skipped = {i.path.partition("#")[0]: i.reason for i in taken if isinstance(i, Skipped)}
    files = {str(path) for path in corpus.rglob("*") if path.is_file()}
    assert items | skipped.keys() == files
    assert all(reason.endswith(".") for reason in skipped.values())
    assert len({i.path for i in taken}) == len(taken)
    assert len(items) > 1300


def test_every_mail_parses_and_can_be_stored(mails: list[tuple[Item, ParsedMail]]) -> None:
    """As JSON, without NUL, with a run id and a content digest."""
    for item, mail in mails:
        encoded = msgspec.json.encode(mail)
        assert b"\\u0000" not in encoded, item.path
        assert mail_run_id(item.raw, mail, tenant="t") and content_digest(item.raw)
        assert "\n" not in mail.subject + (mail.message_id or "")


def test_auto_submitted_mail_is_automated(mails: list[tuple[Item, ParsedMail]]) -> None:
    """About 350 of them, in all line ends."""
    marked = [
        (item, mail)
        for item, mail in mails
        if _AUTO_SUBMITTED.search(re.split(rb"\r?\n\r?\n|\r\r", item.raw, maxsplit=1)[0].replace(b"\r", b"\n"))
    ]
    assert len(marked) > 300
    assert [item.path for item, mail in marked if mail.automated is None] == []


def test_people_are_not_automated(corpus: Path) -> None:
    """None of the replies and none of the benign mails."""
    texts = [path.read_text(errors="replace") for path in (corpus / "crisp-reply").glob("*.txt")]
    assert len(texts) > 80
    assert [text[:80] for text in [*texts, *benign(corpus)] if as_mail(text).automated] == []


def test_replies_keep_their_own_words(corpus: Path) -> None:
    """Stripping leaves something of each, and never the line above a quote."""
    wrote = re.compile(
        r"(?m)^(?:On|Am|Le|El|Il|Em) .{6,120}(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu)\s*:\s*$"
    )
    kept = [
        p.name
        for p in (corpus / "crisp-reply").glob("*.txt")
        if wrote.search(split_reply(p.read_text(errors="replace")).new)
    ]
    assert len(kept) <= 2


def test_harmless_texts_are_not_called_injections(corpus: Path) -> None:
    """At most 0.5 % of banking77's test questions and BIPIA's benign mails together."""
    with (corpus / "banking77" / "test.csv").open(newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    texts.extend(benign(corpus))
    flagged = [t[:100] for t in texts if any(f.kind in ("injection", "smuggling") for f in scan_text(as_mail(t))[1])]
    assert len(texts) > 3000
    assert len(flagged) <= 0.005 * len(texts), flagged


def test_honest_real_mail_is_not_held(mails: list[tuple[Item, ParsedMail]]) -> None:
    """None of the honest mails of the spam filter's own tests is spam, a lure or an attack."""
    for item, mail in mails:
        if "/spamassassin/nice" in item.path or "/welcomelists/" in item.path:
            _, findings, score = scan_text(mail)
            assert score < 80, item.path
            assert not [
                f
                for f in findings
                if f.kind in ("injection", "smuggling") or (f.kind == "link" and f.confidence >= 0.8)
            ], item.path

"""Mails of the field cases: as their case file gives them, where one is found, else in words of our own.

`WAYBOOK_FIELD_CASES` names a case file, by default `../shared/cases/field-cases.json` beside the repository.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
FILE = Path(os.environ.get("WAYBOOK_FIELD_CASES", ROOT.parent / "shared" / "cases" / "field-cases.json"))


@cache
def _cases() -> dict[str, dict[str, Any]]:
    if not FILE.is_file():
        return {}
    return {case["id"]: case for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]}


def case_mail(case: str) -> list[bytes]:
    """The mail that the case file gives for a case; nothing where there is no file, or the case has no mail."""
    text = _cases().get(case, {}).get("try", {}).get("raw_latin1")
    return [] if text is None else [text.encode("latin-1")]


def mail(head: str = "", body: str = "Where is order 12?\n", *, encoding: str = "utf-8", **fields: str) -> bytes:
    """A mail with CRLF line ends: the usual headers, changed by `fields` (an empty one leaves its header out)."""
    names = {"sender": "From", "to": "To", "subject": "Subject", "message_id": "Message-ID", "content": "Content-Type"}
    given = {
        "sender": "Ana Alm <ana@customer.example>", "to": "help@shop.example", "subject": "order 12",
        "message_id": "<m-1@customer.example>", **fields,
    }  # fmt: skip
    lines = [f"{names[name]}: {value}" for name, value in given.items() if value]
    text = "\n".join([*head.strip().splitlines(), *lines]) + "\n\n" + body
    return text.replace("\r\n", "\n").replace("\n", "\r\n").encode(encoding)


VOUCHED = (
    "Authentication-Results: mx.shop.example; spf=pass smtp.mailfrom=customer.example; "
    "dkim=pass header.d=customer.example"
)
"""What the receiver of the tests' shop writes into a mail that is really from the customer."""


def vouched(domain: str) -> str:
    """The same for a mail from another domain."""
    return VOUCHED.replace("customer.example", domain)


def replaced(raw: bytes, name: str, value: str) -> bytes:
    """`raw` with the header `name` set to `value` (added where it was missing)."""
    head, _, body = raw.partition(b"\r\n\r\n")
    prefix = f"{name.lower()}:".encode()
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(prefix)]
    return b"\r\n".join([*lines, f"{name}: {value}".encode("utf-8", "surrogateescape")]) + b"\r\n\r\n" + body

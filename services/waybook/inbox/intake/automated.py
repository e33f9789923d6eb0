"""Mail that no person waits behind: stored, archived as `automated`, never answered (DESIGN 5, RFC 3834).

Header by header, so that a sender who sets one of them is believed and nobody is judged by the words of a mail.
"""

import re
from collections.abc import Callable, Collection

from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.scan.hosts import ascii_address

_PRECEDENCE = frozenset({"bulk", "list", "junk", "auto_reply", "auto-reply"})
_DAEMONS = frozenset({"mailer-daemon", "postmaster", "mail-daemon", "mailerdaemon", "noreply-mailer-daemon"})
_BARE_DAEMON = re.compile(r"(?i)\b(?:mailer-daemon|mail delivery (?:sub)?system)\b")
_RESPONDER_HEADERS = ("x-autoreply", "x-autorespond", "x-autoresponder", "x-mail-autoreply", "x-auto-reply-from")


def automated_reason(mail: ParsedMail, own_addresses: Collection[str] = ()) -> str | None:
    """Why `mail` is automated or our own, for people to read; None when a person may have written it."""
    for rule in _RULES:
        if reason := rule(mail):
            return reason
    return self_send(mail, own_addresses)


def self_send(mail: ParsedMail, own_addresses: Collection[str]) -> str | None:
    """Whether the mail comes from one of our own addresses: answering it would answer ourselves."""
    own = {ascii_address(address).lower() for address in own_addresses}
    authors = [a.address for a in (mail.author, mail.sender) if a]
    return next((f"sent from our own address {a}" for a in authors if ascii_address(a).lower() in own), None)


def _auto_submitted(mail: ParsedMail) -> str | None:
    for value in mail.headers.get("auto-submitted", ()):
        word = value.split(";")[0].split("(")[0].strip().lower()
        if word and word != "no":
            return f"Auto-Submitted: {word}"
    return None


def _list(mail: ParsedMail) -> str | None:
    return f"List-Id: {mail.header('list-id')[:80]}" if "list-id" in mail.headers else None


def _precedence(mail: ParsedMail) -> str | None:
    value = mail.header("precedence").strip().lower()
    return f"Precedence: {value}" if value in _PRECEDENCE else None


def _suppress(mail: ParsedMail) -> str | None:
    value = mail.header("x-auto-response-suppress").strip()
    return f"X-Auto-Response-Suppress: {value[:80]}" if value and value.lower() != "none" else None


def _responder(mail: ParsedMail) -> str | None:
    for name in _RESPONDER_HEADERS:
        value = mail.header(name).strip().lower()
        if name in mail.headers and value not in ("no", "false", "0"):
            return f"{name.title()}: {value[:80]}"
    return None


def _null_return_path(mail: ParsedMail) -> str | None:
    paths = mail.headers.get("return-path", ())
    return "Return-Path: <> (no reply is possible)" if paths and "".join(paths[0].split()) == "<>" else None


def _daemon(mail: ParsedMail) -> str | None:
    for address in (mail.author, mail.sender):
        if address and address.address.partition("@")[0].lower() in _DAEMONS:
            return f"sent by {address.address.partition('@')[0]}"
    bare = _BARE_DAEMON.search(mail.header("from")) if not (mail.author and mail.author.address) else None
    return f"sent by {bare[0]}" if bare else None


def _delivery(mail: ParsedMail) -> str | None:
    return f"a delivery report: {mail.delivery}" if mail.delivery is not None and _is_report(mail) else None


def _report(mail: ParsedMail) -> str | None:
    return "a delivery or disposition report" if _is_report(mail) else None


def _is_report(mail: ParsedMail) -> bool:
    return mail.header("content-type").lower().startswith("multipart/report")


def _calendar_notice(mail: ParsedMail) -> str | None:
    item = mail.invitation
    return f"a calendar notice ({item.method})" if item and item.is_notice else None


_RULES: tuple[Callable[[ParsedMail], str | None], ...] = (
    _delivery,
    _auto_submitted,
    _list,
    _precedence,
    _suppress,
    _responder,
    _null_return_path,
    _daemon,
    _report,
    _calendar_notice,
)

"""Links that lead elsewhere than they say, and senders that are not who they look like."""

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from waybook.inbox.intake.mail import Attachment, ParsedMail
from waybook.inbox.scan.findings import Finding
from waybook.inbox.scan.fold import fold, short_words
from waybook.inbox.scan.hosts import ascii_host, imitates, mixes_scripts, pretty_host, registered
from waybook.inbox.scan.visible import Link

PHISHING_CONFIDENCE = 0.8
_BARE_URL = re.compile(r"(?i)\b(?:https?://|www\.)[^\s<>\"'()\[\]]{4,500}")
_HOST_IN_TEXT = re.compile(r"(?i)^\W*(?:https?://)?((?:[\w-]+\.)+[a-z]{2,24})(?:[/?:#]\S*)?\W*$")
_ADDRESS_LIKE = re.compile(r"[\w.+-]+@([\w-]+(?:\.[\w-]+)+)")
_NUMERIC = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|0x[0-9a-f]+|\d{8,10}|\[[0-9a-f:]+\]")
_BAIT = re.compile(
    r"verify your|confirm your (?:account|identity|password|details)|account (?:has been |was |is |will be "
    r")?(?:suspended|locked|limited|"
    r"closed|deactivated)|unusual (?:sign|activity|login)|password (?:expire|reset)|update your (?:payment|billing|"
    r"account)|"
    r"log ?in (?:now|here|to)|sign in (?:now|here|to)|security alert|webmail|mailbox (?:is )?full|"
    r"konto (?:wurde |ist )?(?:gesperrt|eingeschrankt)|bestatigen sie ihre|zugangsdaten|compte (?:a ete "
    r")?(?:suspendu|bloque)|"
    r"confirmez votre|cuenta (?:ha sido )?(?:suspendida|bloqueada)|verifique su|account (?:e stato )?(?:sospeso|"
    r"bloccato)|"
    r"アカウントが|本人確認|账户|验证您的"
)
_CREDENTIAL_PATH = re.compile(
    r"(?i)log-?in|sign-?in|verify|secure|account|update|confirm|webscr|password|wallet|banking"
)
_PROGRAMS = (
    "exe scr com pif bat cmd vbs vbe js jse wsf wsh hta ps1 jar msi lnk iso img cpl reg chm scf xll one docm xlsm pptm"
)
_DANGEROUS = frozenset(_PROGRAMS.split())
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
_TRACKERS = ("click", "track", "link", "email", "mail", "news", "go", "t", "e", "url", "r")


def link_findings(links: Iterable[Link], text: str, own_hosts: frozenset[str] = frozenset()) -> list[Finding]:
    """What is wrong with the links of a mail; from PHISHING_CONFIDENCE on it is a lure."""
    bait = _BAIT.search(fold(text[:20_000])) is not None
    found: dict[tuple[str, str], Finding] = {}
    bare = [Link("", m[0]) for m in _BARE_URL.finditer(short_words(text[:100_000]))][:100]
    for link in [*links, *bare][:300]:
        for name, confidence in _link_signs(link, bait, own_hosts):
            known = found.get((name, link.href))
            if known is None or known.confidence < confidence:
                found[name, link.href] = Finding(
                    "link", name, confidence, "link", f"{link.text[:80]} -> {link.href[:160]}"
                )
    return list(found.values())[:20]


def _link_signs(link: Link, bait: bool, own_hosts: frozenset[str]) -> list[tuple[str, float]]:
    href = "".join(unquote(link.href).split())
    scheme = href.partition(":")[0].lower()
    if scheme in ("javascript", "vbscript") or href.lower().startswith("data:text/html"):
        return [("script_link", 0.9)]
    if href.lower().startswith("www."):
        href, scheme = f"http://{href}", "http"
    if scheme not in ("http", "https"):
        return []
    try:
        parts = urlsplit(href)
        host = (parts.hostname or "").lower()
    except ValueError:
        return [("broken_link", 0.5)]
    return [*_host_signs(host, parts.path, bait, own_hosts), *_mismatch(link.text, host, parts.netloc, bait)]


def _host_signs(host: str, path: str, bait: bool, own_hosts: frozenset[str]) -> list[tuple[str, float]]:
    signs: list[tuple[str, float]] = []
    if _NUMERIC.fullmatch(host):
        lure = bait and _CREDENTIAL_PATH.search(path)
        signs.append(("numeric_host", 0.85 if lure else 0.75 if bait else 0.4))
    if mixes_scripts(host):
        signs.append(("mixed_script_host", 0.85))
    if known := imitates(host, own_hosts):
        signs.append((f"imitates {known}", 0.9))
    return signs


def _mismatch(text: str, host: str, netloc: str, bait: bool) -> list[tuple[str, float]]:
    signs: list[tuple[str, float]] = []
    if "@" in netloc and re.search(r"\.[a-z]{2,}", netloc.rpartition("@")[0]):
        signs.append(("host_in_user_name", 0.9))
    shown = _HOST_IN_TEXT.match(text.strip())
    if shown and host:
        said, real = registered(shown[1]), registered(host)
        if said != real and not _is_tracker(host):
            signs.append(("shows_other_host", 0.85 if bait else 0.5))
        elif said != real and bait:
            signs.append(("shows_other_host", 0.6))
    return signs


def _is_tracker(host: str) -> bool:
    return host.split(".")[0].rstrip("0123456789") in _TRACKERS


def sender_findings(
    mail: ParsedMail, own_hosts: frozenset[str] = frozenset(), known: frozenset[str] = frozenset()
) -> list[Finding]:
    """Signs that the sender is not who it looks like. `known`: hosts of customers that may be imitated."""
    author = mail.author
    if author is None or not author.address:
        return []
    found: list[Finding] = []
    host = author.domain
    shown = pretty_host(host)
    if shown != ascii_host(host):
        found.append(Finding("sender", "punycode_host", 0.5, "from", f"{shown} is {ascii_host(host)}"))
    if mixes_scripts(host):
        found.append(Finding("sender", "mixed_script_host", 0.6, "from", f"{shown} is {ascii_host(host)}"))
    for other in (imitates(host, own_hosts), imitates(host, known)):
        if other:
            found.append(Finding("sender", "imitates_host", 0.6, "from", f"{shown} looks like {other}"))
    if mixes_scripts(author.name):
        found.append(Finding("sender", "mixed_script_name", 0.5, "from", author.name[:80]))
    named = _ADDRESS_LIKE.search(author.name)
    if named and registered(named[1]) != registered(host):
        found.append(
            Finding("sender", "name_shows_other_address", 0.6, "from", f"{author.name[:80]} <{author.address}>")
        )
    for reply in mail.reply_to:
        if registered(reply.domain) != registered(host):
            found.append(Finding("sender", "reply_goes_elsewhere", 0.5, "reply-to", reply.address))
    return found


def attachment_findings(attachments: Iterable[Attachment]) -> list[Finding]:
    """Files that disguise what they are, or that start programs."""
    found = []
    for item in attachments:
        suffix = item.name.rpartition(".")[2].lower()
        if _DIRECTION.search(item.name):
            plain = _DIRECTION.sub(lambda m: f"[U+{ord(m[0]):04X}]", item.name)
            found.append(Finding("attachment", "disguised_name", 0.8, "attachment", plain[:200]))
        elif suffix in _DANGEROUS and "." in item.name:
            found.append(Finding("attachment", "program", 0.6, "attachment", item.name[:200]))
    return found[:20]

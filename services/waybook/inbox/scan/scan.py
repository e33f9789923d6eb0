"""The work of security_scan: all deterministic layers, and the guard where one is configured."""

import msgspec

from waybook.agents.model import Model
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.scan.authentication import verify_sender
from waybook.inbox.scan.findings import Finding, ScanResult, SecurityFlags
from waybook.inbox.scan.guard import GuardVerdict, ask_guard
from waybook.inbox.scan.hiding import hidden_findings
from waybook.inbox.scan.invisible import Hidden, smuggled, strip_invisible
from waybook.inbox.scan.links import PHISHING_CONFIDENCE, attachment_findings, link_findings, sender_findings
from waybook.inbox.scan.phrases import find_phrases
from waybook.inbox.scan.spam import spam_score
from waybook.inbox.scan.visible import Page, render

_CONFIDENCE_PHRASE = 0.85


class ScanSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan knows beside the mail. `own_hosts` are ours, `known_hosts` those of customers.

    `receivers` are the names under which our receiving servers write Authentication-Results headers.
    """

    own_hosts: frozenset[str] = frozenset()
    known_hosts: frozenset[str] = frozenset()
    receivers: frozenset[str] = frozenset()
    agent_enabled: bool = True


class Reading(msgspec.Struct, frozen=True):
    """A mail as its reader sees it, and what is hidden from the reader."""

    text: str
    hidden: tuple[Hidden, ...]
    page: Page | None


def read_mail(mail: ParsedMail) -> Reading:
    """What a reader sees of a mail: the HTML where it shows anything, else the plain text."""
    page = render(mail.html) if mail.html else None
    plain = strip_invisible(mail.text or "")
    text = page.text if page is not None and page.text.strip() else plain
    sources = (mail.subject, mail.text or "")
    hidden = [h for source in sources for h in smuggled(source)]
    return Reading(text, (*(page.hidden if page else ()), *hidden), page)


def scan_text(mail: ParsedMail, settings: ScanSettings | None = None) -> tuple[Reading, tuple[Finding, ...], int]:
    """The deterministic layers: what the reader sees, the findings, and the spam score."""
    settings = settings or ScanSettings()
    reading = read_mail(mail)
    findings: list[Finding] = []
    for where, text in _seen_texts(mail, reading):
        for phrase in find_phrases(text):
            name = f"{phrase.kind} ({phrase.disguise})" if phrase.disguise else phrase.kind
            findings.append(Finding("injection", name, _CONFIDENCE_PHRASE, where, phrase.excerpt))
    findings.extend(hidden_findings(reading.hidden, f"{mail.subject}\n{reading.text}\n{mail.text or ''}"))
    links = reading.page.links if reading.page else ()
    findings.extend(link_findings(links, f"{reading.text}\n{mail.text or ''}", settings.own_hosts))
    findings.extend(sender_findings(mail, settings.own_hosts, settings.known_hosts))
    findings.extend(attachment_findings(mail.attachments))
    spammy = mail.header("x-spam-flag").strip().lower() == "yes"
    score = spam_score(mail.subject, reading.text, len(links), spammy)
    return reading, tuple(findings[:40]), score


def _seen_texts(mail: ParsedMail, reading: Reading) -> list[tuple[str, str]]:
    texts = [("subject", mail.subject), ("text", reading.text)]
    if mail.text and mail.text != reading.text:
        texts.append(("plain_part", mail.text))
    texts.extend(("other_part", text) for text in mail.other_text[:20])
    texts.append(("names", "\n".join([mail.from_text, *(a.name for a in mail.attachments[:50])])))
    return [(where, text) for where, text in texts if text.strip()]


async def security_scan(
    mail: ParsedMail,
    *,
    now: int,
    guard: Model | None = None,
    settings: ScanSettings | None = None,
    released: bool = False,
) -> tuple[ScanResult, GuardVerdict]:
    """Scans a mail. `now` is in milliseconds since the epoch, UTC. `released`: a person let this mail pass before.

    A guard that does not answer leaves `guard_unavailable`: drafting goes on, unattended sending does not. Raises
    ModelRateLimited only.
    """
    settings = settings or ScanSettings()
    reading, findings, score = scan_text(mail, settings)
    judged = await ask_guard(guard, mail.subject, reading.text) if guard is not None else GuardVerdict()
    if judged.is_injection:
        findings = (*findings, Finding("injection", judged.kind, judged.confidence, "guard"))
    result = result_of(findings, score, reading.text, now, settings, judged, guard is not None)
    verification = verify_sender(mail, settings.receivers)
    flags = msgspec.structs.replace(result.security_flags, sender_verification=verification, released=released)
    return msgspec.structs.replace(result, security_flags=flags), judged


def result_of(
    findings: tuple[Finding, ...],
    score: int,
    text: str,
    now: int,
    settings: ScanSettings,
    judged: GuardVerdict,
    guarded: bool,
) -> ScanResult:
    """The step's output from what the layers found."""
    attacks = sorted((f for f in findings if f.kind in ("injection", "smuggling")), key=lambda f: -f.confidence)
    lure = any(f.kind == "link" and f.confidence >= PHISHING_CONFIDENCE for f in findings)
    first = next(iter(attacks), None)
    flags = SecurityFlags(
        injection_detected=first is not None,
        injection_type=first.name if first else None,
        confidence=first.confidence if first else 0.0,
        flagged_content=first.excerpt if first else None,
        spam_score=score,
        phishing_detected=lure,
        guard_unavailable=judged.unavailable,
        guard_configured=guarded,
        scan_timestamp=now,
        findings=findings,
    )
    return ScanResult(
        security_flags=flags,
        is_injection=first is not None,
        max_confidence=flags.confidence,
        spam_score=score,
        phishing_detected=lure,
        agent_enabled=settings.agent_enabled,
        text=text,
    )

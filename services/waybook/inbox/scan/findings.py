"""What security_scan says: findings with their confidence, and the flags that the run keeps."""

from typing import Literal

import msgspec

FindingKind = Literal["injection", "smuggling", "hidden", "link", "sender", "attachment"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found. `where` names the place in the mail, `excerpt` the words, for people."""

    kind: FindingKind
    name: str
    confidence: float
    where: str
    excerpt: str = ""


class SecurityFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What the run keeps of a scan. `scan_timestamp` is in milliseconds since the epoch, UTC.

    `sender_verification` is the word of our own receiving server, `unknown` where none is configured. `released`: a
    person let the mail pass, whatever was found; it widens nothing else.
    """

    injection_detected: bool = False
    injection_type: str | None = None
    confidence: float = 0.0
    flagged_content: str | None = None
    spam_score: int = 0
    phishing_detected: bool = False
    guard_unavailable: bool = False
    guard_configured: bool = False
    sender_verification: Literal["verified", "unverified", "unknown"] = "unknown"
    released: bool = False
    scan_timestamp: int = 0
    findings: tuple[Finding, ...] = ()


class ScanResult(msgspec.Struct, frozen=True, kw_only=True):
    """Output of security_scan (spec, section 7.1). `text` is what a model may read of the mail: what a reader sees."""

    security_flags: SecurityFlags
    is_injection: bool
    max_confidence: float
    spam_score: int
    phishing_detected: bool
    agent_enabled: bool = True
    text: str = ""


QUARANTINE_CONFIDENCE = 0.7
SPAM_SCORE = 80

Verdict = Literal["quarantined", "spam", "disabled", "clean"]


def verdict(result: ScanResult) -> Verdict:
    """Where the scan sends the run; the first match wins (spec, section 7.1)."""
    held = (result.is_injection and result.max_confidence >= QUARANTINE_CONFIDENCE) or result.phishing_detected
    if held and not result.security_flags.released:
        return "quarantined"
    if result.spam_score >= SPAM_SCORE:
        return "spam"
    return "clean" if result.agent_enabled else "disabled"

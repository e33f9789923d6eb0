"""Whether the sender is who the mail says, by the word of our own receiver alone.

Anybody can write an Authentication-Results header into a mail; only those that carry the name of a configured
receiving server count, and only a pass for the domain in From vouches for From (RFC 8601, RFC 7489).
"""

import re
from collections.abc import Collection
from typing import Literal

from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.scan.hosts import ascii_host, registered

Verification = Literal["verified", "unverified", "unknown"]
_RESULT = re.compile(
    r"\b(dkim|spf|dmarc)\s*=\s*([a-z]+)((?:\s+(?!(?:dkim|spf|dmarc|arc|auth|iprev)\s*=)[^;]*)?)", re.IGNORECASE
)
_DOMAIN = {
    "dkim": re.compile(r"header\.(?:d|i)\s*=\s*\"?(?:[^\s@;\"]*@)?([\w.-]+)", re.IGNORECASE),
    "spf": re.compile(r"smtp\.(?:mailfrom|mfrom)\s*=\s*\"?(?:[^\s@;\"]*@)?([\w.-]+)", re.IGNORECASE),
    "dmarc": re.compile(r"header\.from\s*=\s*\"?([\w.-]+)", re.IGNORECASE),
}


def verify_sender(mail: ParsedMail, receivers: Collection[str]) -> Verification:
    """`verified` when a receiver of ours vouches for the From domain, `unverified` when it does not.

    `receivers` are the names by which our receiving servers sign their results (authserv-id); without any configured
    nothing can be said: `unknown`.
    """
    if not receivers:
        return "unknown"
    if mail.author is None or not mail.author.domain:
        return "unverified"
    ours = {name.lower() for name in receivers}
    for header in mail.headers.get("authentication-results", ()):
        server = re.split(r"[;\s]", header.strip(), maxsplit=1)[0].lower()
        if server in ours:
            return "verified" if _vouches(header, mail.author.domain) else "unverified"
    return "unverified"


def _vouches(header: str, domain: str) -> bool:
    """Whether one header holds a pass for `domain` or its organisation."""
    for method, result, properties in _RESULT.findall(header):
        if result.lower() != "pass":
            continue
        found = _DOMAIN[method.lower()].search(properties)
        if found and registered(found[1]) == registered(ascii_host(domain)):
            return True
    return False

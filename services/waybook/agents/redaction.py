"""What a text that people look into must not give away: addresses and keys."""

import re

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # The credentials of a URL, before an address is looked for: user:password@host looks like one.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@]{1,400}@"), r"\1[credentials]@"),
    (re.compile(r"[^\s<>()\[\]\",;:@]{1,64}@[^\s<>()\[\]\",;:@]{1,200}\.[^\s<>()\[\]\",;:@.]{2,63}"), "[address]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9+/_.~=-]{8,}"), r"\1 [key]"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), "[key]"),
    (
        re.compile(r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|xox[abprs]|AKIA|ASIA|glpat|hf)[-_]?[A-Za-z0-9*_-]{12,}"),
        "[key]",
    ),
    (
        re.compile(
            r"(?i)\b(api[ _-]?key|access[ _-]?key|password|passwort|passwd|secret|token)(['\"]?\s*(?:[:=]|is)\s*['\"]?)"
            r"[^\s'\",;<>]{4,}"
        ),
        r"\1\2[key]",
    ),
    (re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"), "[account]"),
    (re.compile(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d.])"), "[number]"),
    # No word of any language: long, and of letters of both cases and digits.
    (re.compile(r"\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[a-z])(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{24,}\b"), "[key]"),
)


def redacted(text: str) -> str:
    """`text` without mail addresses, credentials, keys, account and card numbers.

    Deterministic patterns, so names and what a person tells of itself stay: where the text goes has to expire too.
    """
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text

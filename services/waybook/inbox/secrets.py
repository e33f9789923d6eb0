"""Secrets in a draft: what a reply must not give away, whoever asked for it nicely."""

import re

_SECRET = re.compile(
    r"(?i)\b(?:password|passwort|mot de passe|contraseña|one[- ]time (?:code|password)|verification code|otp|pin|tan|"
    r"api[ _-]?key|secret|token)\b"
    r"\s*(?:is|ist|est|es|:|=)\s*\S{4,}|\bsk-[A-Za-z0-9]{16,}|\bAKIA[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|"
    r"https?://\S*(?:reset|recover|magic|verify|invite)[^\s]*(?:token|code|key|t)=\S+|"
    r"\b\w*[ck]od(?:e|igo|ice)\b\D{0,20}\d{6,8}\b"
)


def holds_secret(text: str) -> bool:
    """Whether a draft holds a password, a one-time code or a recovery link."""
    return _SECRET.search(text) is not None

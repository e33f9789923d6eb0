"""Secrets in a draft: what a reply must not give away, whoever asked for it nicely."""

import re

_NAMES = (
    r"password|passwd|passphrase|passwort|kennwort|mot de passe|contraseña|clave de acceso|senha|wachtwoord|parola|hasło|"
    r"пароль|one[- ]time (?:code|password)|verification code|security code|otp|pin|tan|api[ _-]?key|secret|token"
)
_IS = r"is|ist|lautet|est|es|è|é|:|="
_SECRET = re.compile(
    rf"(?i)\b(?:{_NAMES})\b\s*(?:(?:{_IS})\s*)+\S{{4,}}"
    r"|\b(?:sk|pk|rk)[-_](?:(?:live|test|proj)[-_])?[A-Za-z0-9]{16,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\b(?:ghp|gho|ghs|glpat|github_pat|xox[abprs])[-_][A-Za-z0-9_-]{12,}|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|https?://\S{0,200}(?:reset|recover|magic|verify|invite|activat|unlock|passwor)\S{0,200}?"
    r"(?:(?:token|code|key|t)=\S+|/[A-Za-z0-9_-]{16,})"
    r"|\b\w*[ck]od(?:e|igo|ice)\b\D{0,20}(?:\d{6,8}|\d{3}[ -]\d{3}|\d{4}[ -]\d{4})\b"
)


def holds_secret(text: str) -> bool:
    """Whether a draft holds a password, a one-time code or a recovery link."""
    return _SECRET.search(text) is not None

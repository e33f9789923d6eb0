"""Host names as they are and as they look: ASCII form, readable form, and whose name they imitate."""

import re
import unicodedata
from functools import lru_cache

from waybook.inbox.scan.fold import fold, look_alikes

_WIDE = "co com org net gov edu ac or ne go gob gouv"
_SECOND_LEVEL = frozenset(_WIDE.split())
_SHAPES = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("0", "o"), ("1", "l"), ("5", "s"), ("3", "e"))


@lru_cache(maxsize=1024)
def ascii_host(host: str) -> str:
    """The host in its ASCII (punycode) form, lower case; unchanged where it has none."""
    host = host.strip().strip(".").lower()
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


def ascii_address(address: str) -> str:
    """A mail address with its host in ASCII form; a bare host is one too."""
    local, at, host = address.rpartition("@")
    return f"{local}{at}{ascii_host(host)}"


@lru_cache(maxsize=1024)
def pretty_host(host: str) -> str:
    """The host as programs show it: punycode labels as letters."""
    labels = []
    for label in ascii_host(host).split("."):
        try:
            labels.append(label[4:].encode().decode("punycode") if label.startswith("xn--") else label)
        except UnicodeError:
            labels.append(label)
    return ".".join(labels)


def registered(host: str) -> str:
    """The part of a host that is bought as a whole: `mail.shop.example` is of `shop.example`."""
    labels = ascii_host(host).split(".")
    wide = len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2
    return ".".join(labels[-3:] if wide else labels[-2:])


@lru_cache(maxsize=1024)
def skeleton(host: str) -> str:
    """What a host looks like: equal for hosts that a reader takes for each other."""
    text = look_alikes("a " * 20 + fold(pretty_host(host)))[40:]
    for shape, seen in _SHAPES:
        text = text.replace(shape, seen)
    return text


def imitates(host: str, known: frozenset[str]) -> str | None:
    """The known host that `host` is made to look like; None when it is one of them or like none."""
    mine = registered(host)
    if any(mine == registered(k) for k in known):
        return None
    return next((k for k in sorted(known) if skeleton(mine) == skeleton(registered(k))), None)


@lru_cache(maxsize=1024)
def mixes_scripts(host: str) -> bool:
    """Whether one label of a host (or word of a name) holds letters of scripts that are not written together."""
    for label in re.split(r"[.\s]+", pretty_host(host)):
        if label.isascii():
            continue
        scripts = {_script(c) for c in label if c.isalpha()}
        if len(scripts - {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"}) > 1:
            return True
    return False


def _script(char: str) -> str:
    return re.split(r"[ -]", unicodedata.name(char, "NONE"))[0]

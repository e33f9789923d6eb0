"""The reference monitor: the last look at a reply that no person approved. It asks no model (pipeline-spec 12)."""

import re
from html import escape
from html.parser import HTMLParser
from urllib.parse import urlsplit

import msgspec

from waybook.inbox.reply import Reply
from waybook.inbox.scan.hosts import ascii_address
from waybook.inbox.secrets import holds_secret


class Withheld(msgspec.Struct, frozen=True):
    """The reply may not leave; the draft is kept."""

    text: str


def checked(reply: Reply, *, sender: str, own_hosts: frozenset[str]) -> Reply | Withheld:
    """The reply as it may leave, links and remote images disarmed, or why it may not.

    `sender`: the author recorded at intake, to whom alone it may go. Links to `own_hosts` stay.
    """
    if [to.lower() for to in reply.to] != [ascii_address(sender).lower()]:
        return Withheld(f"the recipient {', '.join(reply.to) or 'nobody'} is not the sender of the message")
    if holds_secret(f"{reply.subject}\n{reply.text}\n{reply.html or ''}"):
        return Withheld("the reply holds a secret, a one-time code or a recovery link")
    html = disarmed(reply.html, own_hosts) if reply.html is not None else None
    return msgspec.structs.replace(reply, html=html, text=disarmed_text(reply.text, own_hosts))


_LINK = re.compile(r"(?i)\b(?:https?|ftp)://[^\s<>\"']+|\bwww\.[^\s<>\"']+")
_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*")
_GONE = frozenset({"script", "style", "iframe", "object", "form", "svg", "math", "template", "noscript"})
_TEXT = {"a", "abbr", "b", "br", "code", "em", "i", "s", "small", "span", "strong", "sub", "sup", "u"}
_BLOCKS = {"blockquote", "div", "h1", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
_KEPT = frozenset(_TEXT | _BLOCKS | _TABLES)
_EMPTY = frozenset({"br", "hr"})


def is_own(url: str, own_hosts: frozenset[str]) -> bool:
    """Whether a link leads to one of our own hosts or a part of one.

    A host that is no plain name is nobody's: browsers end it at a backslash, and read what stands in percent signs.
    """
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").lower().rstrip(".")
    except ValueError:
        return False
    if parts.scheme.lower() == "mailto":
        return True
    if parts.scheme.lower() not in ("http", "https") or _HOST.fullmatch(host) is None:
        return False
    return any(host == own.lower() or host.endswith(f".{own.lower()}") for own in own_hosts)


def disarmed_text(text: str, own_hosts: frozenset[str]) -> str:
    """A plain text whose foreign links no mail program makes clickable."""

    def disarm(found: re.Match[str]) -> str:
        link = found[0].rstrip(".,;:!?)")  # the sentence's own
        after = found[0][len(link) :]
        scheme, separator, rest = link.partition("://")
        if separator and not scheme.lower().startswith("www."):
            harmless = f"{scheme.lower().replace('tt', 'xx').replace('ft', 'fx')}[:]//{rest}"
        else:  # programs add the scheme by themselves
            harmless, link = f"{link[:3]}[.]{link[4:]}", f"https://{link}"
        return found[0] if is_own(link, own_hosts) else harmless + after

    return _LINK.sub(disarm, text)


class _Disarmer(HTMLParser):
    """Writes an HTML text anew: known elements without attributes, own links, and the text of all else."""

    def __init__(self, own_hosts: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._own_hosts = own_hosts
        self._gone = 0
        self._links: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _GONE:
            self._gone += 1
        if self._gone or tag not in _KEPT:
            return
        if tag == "a":
            href = next((value for name, value in attrs if name == "href" and value), "")
            own = is_own(href, self._own_hosts)
            self._links.append(own)
            if own:
                self.parts.append(f'<a href="{escape(href)}">')
            return
        self.parts.append(f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        if tag in _GONE:
            self._gone = max(0, self._gone - 1)
        elif not self._gone and tag in _KEPT - _EMPTY and (tag != "a" or (self._links and self._links.pop())):
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._gone:
            self.parts.append(escape(disarmed_text(data, self._own_hosts), quote=False))


def disarmed(html: str, own_hosts: frozenset[str]) -> str:
    """An HTML text without remote images, scripts, styles and foreign links; what people read of it stays."""
    disarmer = _Disarmer(own_hosts)
    disarmer.feed(html)
    disarmer.close()
    return "".join(disarmer.parts)

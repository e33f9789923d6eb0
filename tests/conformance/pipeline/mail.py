"""The mail of a message, as bytes that arrive."""

from collections.abc import Mapping
from email import policy
from email.message import EmailMessage
from typing import Any

FILLER = "This is one more harmless line about the weather in the valley. "


def message_id(name: str) -> str:
    return f"<{name}@cases.example>"


def thread_id(name: str) -> str:
    """The first mail of a thread of the case."""
    return f"thread-{name}@cases.example"


def text_of(given: Mapping[str, Any]) -> str | None:
    """The text, filler and attack put together where the case gives their sizes."""
    if "text_length" not in given:
        return None if given.get("text") is None else str(given["text"])
    length = int(given["text_length"])
    text = (FILLER * (length // len(FILLER) + 1))[:length]
    if given.get("attack") is None:
        return text
    place = int(given.get("attack_at", length))
    return text[:place] + str(given["attack"]) + text[place:]


def build(given: Mapping[str, Any], *, to: str = "help@ours.example") -> bytes:
    """The mail that a given message or a `receive` describes. Headers go out as they are given, unfolded."""
    mail = EmailMessage(policy=policy.SMTP)
    headers: dict[str, str] = {"To": given.get("to") or to, "Subject": given.get("subject", "")}
    if given.get("sender"):
        headers = {"From": given["sender"], **headers}
    identity = given.get("messageId")
    if identity is not None:
        headers["Message-ID"] = identity
    thread = given.get("thread")
    references = given.get("references") or (f"<{thread_id(thread)}>" if thread else None)
    if references:
        headers["References"] = references
        headers["In-Reply-To"] = references.split()[-1]
    if given.get("reply_to"):
        headers["Reply-To"] = given["reply_to"]
    headers.update(given.get("headers") or {})
    text, html = text_of(given), given.get("html")
    if text is not None or html is None:
        mail.set_content(text or "", cte="8bit" if _fits_lines(text or "") else "base64")
    if html is not None:
        if text is None:
            mail.set_content(html, subtype="html", cte="base64")
        else:
            mail.add_alternative(html, subtype="html", cte="base64")
    head = "".join(f"{name}: {_line(value)}\r\n" for name, value in headers.items())
    return head.encode("utf-8", "surrogatepass") + mail.as_bytes()


def _line(value: str) -> str:
    return " ".join(str(value).split())


def _fits_lines(text: str) -> bool:
    return all(len(line.encode("utf-8", "surrogatepass")) <= 990 for line in text.splitlines())

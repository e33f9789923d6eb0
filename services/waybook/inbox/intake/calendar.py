"""The calendar part of a mail: enough of RFC 5545 to say what is invited to, by whom and when."""

import re

from waybook.inbox.intake.headers import one_line
from waybook.inbox.intake.mail import Invitation

_LINE = re.compile(r"^([A-Za-z-]{1,40})((?:;[^:\r\n]*?)?):(.*)$")
_ZONE = re.compile(r"(?i);TZID=\"?([^;:\"]+)")
_ANSWER = re.compile(r"(?i);PARTSTAT=([A-Z-]+)")


def unfolded(text: str) -> str:
    """Calendar text with its folded lines joined: they are folded in the middle of words."""
    return re.sub(r"\n[ \t]", "", text.replace("\r\n", "\n"))


def read_invitation(text: str) -> Invitation | None:
    """The first event of a calendar; None when there is no calendar in `text`."""
    if "BEGIN:VCALENDAR" not in text.upper():
        return None
    found: dict[str, tuple[str, str]] = {}
    inside: list[str] = []
    for line in unfolded(text[:200_000]).split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        name, params, value = match[1].upper(), match[2], match[3]
        if name == "BEGIN":
            inside.append(value.strip().upper())
        elif name == "END":
            del inside[-1:]
        elif inside[-1:] in (["VCALENDAR"], ["VEVENT"], ["VTODO"]):
            found.setdefault(name, (params, _unescape(value)))
    return _invitation(found)


def _invitation(found: dict[str, tuple[str, str]]) -> Invitation:
    def value(name: str) -> str:
        return found.get(name, ("", ""))[1]

    params, start = found.get("DTSTART", ("", ""))
    zone = _ZONE.search(params)
    answer = _ANSWER.search(found.get("ATTENDEE", ("", ""))[0])
    return Invitation(
        method=value("METHOD").upper() or "PUBLISH",
        title=value("SUMMARY"),
        start=start,
        end=value("DTEND"),
        zone=zone[1] if zone else ("UTC" if start.endswith("Z") else ""),
        organizer=re.sub(r"(?i)^mailto:", "", value("ORGANIZER")),
        location=value("LOCATION"),
        uid=value("UID"),
        answer=answer[1].upper() if answer else "",
    )


def invitation_text(item: Invitation, description: str = "") -> str:
    """The invitation as lines of text, for mails that hold nothing else."""
    lines = [f"Calendar {item.method.lower()}: {item.title}".rstrip(": ")]
    if item.start:
        lines.append(f"When: {item.start} {item.zone}".rstrip() + (f" to {item.end}" if item.end else ""))
    if item.location:
        lines.append(f"Where: {item.location}")
    if item.organizer:
        lines.append(f"Organiser: {item.organizer}")
    return "\n".join([*lines, *([description] if description else [])])


def _unescape(value: str) -> str:
    text = value.replace("\\n", " ").replace("\\N", " ").replace("\\,", ",").replace("\\;", ";").replace("\\\\", "\\")
    return one_line(text)[:1000]

"""What a test says to a run when it rests."""

from typing import Any

import msgspec

from waybook.events.command import SignalPayload
from waybook.events.subjects import Issuer
from waybook.events.typed import Event
from waybook.services.walker.requests import DecidePayload


class Say(msgspec.Struct, frozen=True):
    """A command that is given as soon as nothing moves any more; `payload` is the verb's own, as JSON-able data."""

    verb: str
    payload: Any = None
    actor: str = "tester"
    issuer: Issuer = "cli"


def signal(event: Event, *, request: str | None = None, actor: str = "tester") -> Say:
    """An external event for the run, such as a person's answer."""
    body = msgspec.Raw(msgspec.json.encode(event))
    payload = SignalPayload(event=type(event).__name__, body=body, schema=type(event).SCHEMA, request=request)
    return Say("signal", payload, actor)


def approve(*, approval: str | None = None, reason: str | None = None, actor: str = "tester") -> Say:
    """A person's yes to what the run asks for; `approval` names it where several wait."""
    return Say("approve", DecidePayload(approval, reason), actor)


def reject(*, approval: str | None = None, reason: str | None = None, actor: str = "tester") -> Say:
    """A person's no, as `approve`."""
    return Say("reject", DecidePayload(approval, reason), actor)

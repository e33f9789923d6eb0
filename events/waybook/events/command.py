"""Requests to change a run, and their answers."""

from typing import Any

import msgspec

from waybook.events.engine import Parent


def _null() -> msgspec.Raw:
    """What stands for an absent Raw: msgspec neither decodes `Raw | None` nor shows a Raw default in a JSON Schema."""
    return msgspec.Raw(b"null")


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to change a run; it may be refused.

    `id` is made by the client, one per intention, repeated only when the same intention is sent again; it is
    also the message's `Nats-Msg-Id`. Times are milliseconds since the epoch, UTC. `verb` and the run are
    repeated from the subject. `payload` is the verb's own JSON. `if_version`: refuse when the run's version
    differs.
    """

    id: str
    verb: str
    issued_at: int
    actor: str
    payload: msgspec.Raw = msgspec.field(default_factory=_null)
    expires_at: int | None = None
    if_version: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a walker says to a command, after the commit or on a leader-confirmed refusal.

    `already`: the run or the effect was there before. `reason` is a stable word, `text` is for people.
    """

    ok: bool
    command: str
    run: str
    version: int | None = None
    already: bool = False
    reason: str | None = None
    text: str | None = None


class StartPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Payload of the verb `start`: the agent's start event and what intake knows.

    `event` names the start event's type, `body` is its JSON or, above 64 KiB, absent with `reference` naming
    an object in the bucket `artifacts`. `content` is the digest of the canonical content. `mailbox` and `id`
    are what the run id was made of. `thread` is the token of the thread that the run belongs to. `deadline_ms`: how
    long the run may stay open, None: as the agent says. `user`: who asks, as the gateway knows them. `parent`: the
    run and request that ask for this one, believed from the relay only. `sender`: the address that it came from; a
    block of that sender is read. `live`: it came by a channel on which the rate of each sender is kept.
    """

    event: str
    schema: int = 1
    body: msgspec.Raw = msgspec.field(default_factory=_null)
    reference: str | None = None
    content: str | None = None
    thread: str | None = None
    mailbox: str | None = None
    id: str | None = None
    flags: tuple[str, ...] = ()
    configuration: dict[str, Any] = {}
    deadline_ms: int | None = None
    user: str | None = None
    parent: Parent | None = None
    sender: str | None = None
    live: bool = False


class SignalPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Payload of the verb `signal`: an external event of the agent, by type name."""

    event: str
    body: msgspec.Raw
    schema: int = 1
    request: str | None = None

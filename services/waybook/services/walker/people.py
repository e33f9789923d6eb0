"""What people ask of system aggregates, and what runs have them learn (the verb `record`, the relay's alone)."""

from collections.abc import Callable
from typing import Literal

import msgspec

from waybook.engine.aggregates.grants import Grants, grants_of
from waybook.engine.aggregates.keys import grants_key
from waybook.engine.aggregates.requests import (
    Asked,
    BlockSender,
    Body,
    ChangeGrant,
    ChangePolicy,
    Learn,
    SetKillSwitch,
    SetThread,
    SetThreshold,
    SettleReservation,
    TrustSender,
)
from waybook.engine.ports import Delivery
from waybook.events import engine as e
from waybook.events.command import Command, SignalPayload
from waybook.events.errors import InvalidInput
from waybook.events.subjects import CommandSubject
from waybook.services.walker.aggregates import Aggregates
from waybook.services.walker.correspondence import Correspondence
from waybook.services.walker.requests import PEOPLE, UNREADABLE, NotPermitted

MOST_WORDS = 100
"""Grants of one person, and values of one change: a commit has to stay small."""


class KillSwitchPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `kill-switch` to `@policy`."""

    on: bool
    reason: str | None = None


class PolicyPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `policy` to `@policy`: values that stand from now on, null for those that go."""

    values: dict[str, bool | int | float | str | list[str] | None]
    reason: str | None = None


class GrantsPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `grants` to `@grants`: all that the person may do from now on."""

    person: str
    may: tuple[str, ...] = ()
    reason: str | None = None


class ThreadPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `thread` to `@thread`."""

    status: Literal["open", "resolved"]
    reason: str | None = None


class BlockPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `block` to `@sender`."""

    on: bool
    reason: str | None = None


class ThresholdPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `threshold` to `@category`: steps above the settings."""

    level: int = 0
    reason: str | None = None


class TrustPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `trust` to `@sender`."""

    category: str
    trusted: bool
    reason: str | None = None


def _kill_switch(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=KillSwitchPayload)
    return SetKillSwitch(given.on, given.reason)


def _policy(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=PolicyPayload)
    if len(given.values) > MOST_WORDS:
        raise InvalidInput(f"a change of the policy holds at most {MOST_WORDS} values")
    return ChangePolicy(dict(given.values), given.reason)


def _grants(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=GrantsPayload)
    if len(given.may) > MOST_WORDS or not all(word and word.isprintable() for word in given.may):
        raise InvalidInput(f"grants are at most {MOST_WORDS} words of printable characters")
    return ChangeGrant(given.person, given.may, given.reason)


def _thread(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=ThreadPayload)
    return SetThread(given.status, given.reason)


def _block(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=BlockPayload)
    return BlockSender(given.on, given.reason)


def _trust(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=TrustPayload)
    return TrustSender(given.category, given.trusted, given.reason)


def _threshold(raw: bytes) -> Body:
    given = msgspec.json.decode(raw, type=ThresholdPayload)
    return SetThreshold(given.level, given.reason)


RECORD = "record"
_FACTS: dict[str, tuple[str, type[e.EngineEvent]]] = {
    "ReservationSettled": ("@budget @sender", e.ReservationSettled),
    "SenderBlockSet": ("@sender", e.SenderBlockSet),
    "SenderTrustSet": ("@sender", e.SenderTrustSet),
    "OutcomeCounted": ("@outcomes", e.OutcomeCounted),
    "ReplyJudged": ("@sender @category", e.ReplyJudged),
}
"""Facts that runs tell, and which aggregates keep them."""


def _recorded(agent: str, raw: bytes) -> Body:
    told = msgspec.json.decode(raw, type=SignalPayload)
    of, kind = _FACTS.get(told.event, ("", None))
    if kind is None or agent not in of.split():
        raise InvalidInput(f"{agent} learns nothing of {told.event}")
    fact = msgspec.json.decode(told.body, type=kind)
    if isinstance(fact, e.ReservationSettled):
        return SettleReservation(fact.run, fact.execution, fact.outcome)
    assert isinstance(fact, e.OutcomeCounted | e.SenderBlockSet | e.SenderTrustSet | e.ReplyJudged)
    return Learn(fact)


_VERBS: dict[str, tuple[str, Callable[[bytes], Body]]] = {
    "kill-switch": ("@policy", _kill_switch),
    "policy": ("@policy", _policy),
    "grants": ("@grants", _grants),
    "thread": ("@thread", _thread),
    "block": ("@sender", _block),
    "trust": ("@sender", _trust),
    "threshold": ("@category", _threshold),
}


class PeopleDesk:
    """Handles commands whose run is a system aggregate. They need no claim: each is applied once, by its id."""

    def __init__(self, aggregates: Aggregates, correspondence: Correspondence) -> None:
        self._aggregates = aggregates
        self._correspondence = correspondence

    async def handle(self, delivery: Delivery, subject: CommandSubject, command: Command) -> None:
        """Decides and answers. Raises InvalidInput naming what is wrong, PortError: then call it again."""
        key = subject.key
        asked = _read(subject, command)
        held: Grants | None = None
        if key.agent != "@grants":
            held = grants_of(await self._aggregates.look(grants_key(key.tenant)))
        answered = await self._aggregates.ask(key, asked, held)
        await self._correspondence.tell(delivery, key, command, answered.outcome, answered.run)


def _read(subject: CommandSubject, command: Command) -> Asked:
    if subject.verb == RECORD and subject.issuer == "relay":
        return _told(subject.key.agent, command)
    agent, decode = _VERBS.get(subject.verb, ("", None))
    if decode is None or agent != subject.key.agent:
        known = ", ".join(f"{verb} ({of})" for verb, (of, _) in _VERBS.items())
        raise InvalidInput(f"{subject.key.agent} knows no verb {subject.verb!r}; there are {known}")
    if subject.issuer not in PEOPLE:
        raise NotPermitted(f"the verb {subject.verb} is for people, not for {subject.issuer}")
    if agent not in ("@thread", "@sender", "@category") and subject.key.run != "_":
        raise InvalidInput(f"there is one {agent} a tenant; its run is `_`, not {subject.key.run!r}")
    try:
        body = decode(bytes(command.payload))
    except UNREADABLE as error:
        raise InvalidInput(f"the payload of {subject.verb} cannot be used: {error}") from error
    return Asked(body, command.actor, command.id, command.expires_at, command.if_version)


def _told(agent: str, command: Command) -> Asked:
    """A fact is what it is, whenever it comes: it does not expire, and no grant is asked for."""
    try:
        return Asked(_recorded(agent, bytes(command.payload)), command.actor, command.id)
    except UNREADABLE as error:
        raise InvalidInput(f"the payload of {RECORD} cannot be used: {error}") from error

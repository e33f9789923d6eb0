"""From a delivery to a decision's input: the command, its payload, who may give it."""

from typing import Any, Literal

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.inputs import (
    Body,
    Cancel,
    ChildAnswer,
    Continue,
    Decide,
    Delivered,
    Exec,
    HandBack,
    Move,
    Output,
    Restart,
    Retry,
    Signal,
    Start,
    TakeOver,
)
from waybook.engine.intents import Compensate, Renew, Settle
from waybook.engine.ports import Delivery, Objects
from waybook.events.command import Command, SignalPayload, StartPayload
from waybook.events.engine import Parent
from waybook.events.errors import InvalidInput, TerminalError
from waybook.events.headers import RECEIVED
from waybook.events.subjects import AGENT_TOKEN, ANY, RUN_TOKEN, CommandSubject, RunKey, check_token

RELAY_VERBS = frozenset({"timer", "exec", "answer", "continue"})
PEOPLE = frozenset({"gw", "cli"})
DECISIONS: dict[str, Literal["approved", "rejected", "revoked"]] = {
    "approve": "approved",
    "reject": "rejected",
    "revoke": "revoked",
}
"""Verbs by which people decide on approvals."""

SIGNED_BY = "by"
"""The field of an external event that says whose word it is."""

MOST_ID = 200
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding bytes from outside may raise."""

_command = msgspec.json.Decoder(Command)
_start = msgspec.json.Decoder(StartPayload)
_signal = msgspec.json.Decoder(SignalPayload)


class NotPermitted(InvalidInput):
    """The issuer of a command may not give that verb."""


class MovePayload(msgspec.Struct, frozen=True):
    """Payload of the verb `move`: a direct lifecycle call."""

    to: str
    fields: dict[str, object] = {}
    reason: str | None = None


class TimerPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `timer`: the timer that fired."""

    timer: str


class RetryPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `retry`: which way the person wants, None: whatever the agent's table says; and why."""

    how: str | None = None
    reason: str | None = None


class CancelPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `cancel`."""

    reason: str = "cancelled by a person"


class DecidePayload(msgspec.Struct, frozen=True):
    """Payload of `approve`, `reject` and `revoke`.

    `approval` names it, None: the only one that waits. `digest` is that of what the person saw.
    """

    approval: str | None = None
    reason: str | None = None
    digest: str | None = None


class RenewPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `renew`: which operation is to be made once more."""

    operation: str
    reason: str | None = None


class SettlePayload(msgspec.Struct, frozen=True, omit_defaults=True):
    """Payload of the verb `settle`: whether an operation took effect. `by` and `intent` are believed from the relay only."""

    operation: str
    outcome: Literal["succeeded", "failed", "absent"]
    by: Literal["call", "find"] = "find"
    evidence: dict[str, Any] = {}
    intent: str | None = None


class RestartPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `restart`: the actions whose results stand in the next walk, and why it begins."""

    keep: tuple[str, ...] = ()
    reason: str = "restarted by a person"


class ReasonPayload(msgspec.Struct, frozen=True):
    """Payload of `take-over` and `hand-back`."""

    reason: str | None = None


class ExecPayload(msgspec.Struct, frozen=True):
    """Payload of the verb `exec`."""

    step: str
    trigger: str


def read_command(delivery: Delivery) -> Command:
    """The command of a delivery. Raises InvalidInput for bytes that are not one."""
    try:
        command = _command.decode(delivery.payload)
    except UNREADABLE as error:
        raise InvalidInput(f"the command cannot be read: {error}") from error
    if not 0 < len(command.id) <= MOST_ID or not (command.id.isascii() and command.id.isprintable()):
        raise InvalidInput(
            f"command id {command.id[:MOST_ID]!r} has to be 1 to {MOST_ID} characters of printable ASCII, since it "
            "stands in a header"
        )
    return command


def check_tokens(key: RunKey) -> None:
    """Raises InvalidInput for a run that no subject of STATE may name; a server stores commands for it all the same."""
    check_token("tenant", key.tenant)
    check_token("agent", key.agent, AGENT_TOKEN)
    check_token("run", key.run, RUN_TOKEN)


def check_issuer(subject: CommandSubject) -> None:
    """Timer and answer verbs come from the relay only, actors from the gateway and the command line only."""
    if subject.verb in ("timer", "exec", "answer") and subject.issuer != "relay":
        raise NotPermitted(f"the verb {subject.verb} is the relay's, not {subject.issuer}'s")
    if subject.issuer == "relay" and subject.verb not in RELAY_VERBS | {"start", "retry", "cancel", "settle", "signal"}:
        raise NotPermitted(f"the relay may not give the verb {subject.verb}")


def asked_by(subject: CommandSubject, command: Command) -> Parent | None:
    """The run and request that a start is for, when the relay gives it for another run; None for any other command."""
    if subject.verb != "start" or subject.issuer != "relay":
        return None
    try:
        return _start.decode(command.payload).parent
    except UNREADABLE:
        return None


async def read_request(
    delivery: Delivery, subject: CommandSubject, command: Command, definition: AgentDefinition, objects: Objects
) -> tuple[Delivered, StartPayload | None]:
    """The input of a decision, and the start's payload when it is one; its issuer is checked.

    Raises InvalidInput naming what is wrong by `definition`.
    """
    start: StartPayload | None = None
    try:
        if subject.verb == "start":
            start = _start.decode(command.payload)
            if start.parent is not None and subject.issuer != "relay":
                raise InvalidInput("only the relay starts a run for another one")
            body: Body = await _start_body(start, definition, objects)
        else:
            body = _other_body(subject, command, definition)
    except (*UNREADABLE, TerminalError) as error:
        raise InvalidInput(f"the payload of {subject.verb} cannot be used: {error}") from error
    person = subject.issuer in PEOPLE and subject.verb != "start"
    return Delivered(command, body, delivery.claim, received_at(delivery, subject), person), start


def received_at(delivery: Delivery, subject: CommandSubject) -> int:
    """When COMMANDS got the command first, in ms UTC. Only walkers publish to lanes, so what stands there is believed."""
    first = delivery.headers.get(RECEIVED, "") if subject.lane != ANY else ""
    return min(int(first), delivery.received_at) if first.isdecimal() else delivery.received_at


async def _start_body(payload: StartPayload, definition: AgentDefinition, objects: Objects) -> Start:
    body = payload.body
    if bytes(body) == b"null":
        if payload.reference is None:
            raise InvalidInput("a start needs `body`, or `reference` to an object that holds it")
        try:
            body = msgspec.Raw(await objects.get(payload.reference))
        except KeyError as error:
            raise InvalidInput(f"a start refers to {payload.reference!r}, which is not there") from error
    output = _output(definition, payload.event, payload.schema, body)
    if definition.engine.kinds.get(payload.event) != "start":
        raise InvalidInput(f"{payload.event} is not a start event of {definition.engine.agent}")
    return Start(
        output,
        payload.content,
        payload.thread,
        payload.flags,
        payload.configuration,
        payload.deadline_ms,
        payload.user,
        payload.parent,
    )


def _output(definition: AgentDefinition, event: str, schema: int, body: msgspec.Raw) -> Output:
    value = definition.decode(event, schema, body)
    return Output(event, schema, body, value, ancestors=definition.registry.ancestors(event))


def _signed(definition: AgentDefinition, signal: SignalPayload, actor: str) -> msgspec.Raw:
    """A person's word says who it is from, whatever its sender wrote there."""
    known = definition.events.get(signal.event)
    if known is None or SIGNED_BY not in known.__struct_fields__:
        return signal.body
    body = msgspec.json.decode(signal.body, type=dict[str, msgspec.Raw])
    return msgspec.Raw(msgspec.json.encode({**body, SIGNED_BY: actor}))


def _other_body(subject: CommandSubject, command: Command, definition: AgentDefinition) -> Body:
    verb, payload = subject.verb, command.payload
    raw: bytes | msgspec.Raw = payload if bytes(payload) != b"null" else b"{}"
    if verb == "signal":
        signal = _signal.decode(raw)
        body = _signed(definition, signal, command.actor) if subject.issuer in PEOPLE else signal.body
        return Signal(_output(definition, signal.event, signal.schema, body), signal.request)
    if verb == "move":
        move = msgspec.json.decode(raw, type=MovePayload)
        return Move(move.to, dict(move.fields), move.reason)
    if verb in DECISIONS:
        word = msgspec.json.decode(raw, type=DecidePayload)
        return Decide(DECISIONS[verb], word.approval, word.reason, word.digest)
    if verb == "retry":
        again = msgspec.json.decode(raw, type=RetryPayload)
        return Retry(how=again.how, reason=again.reason)
    if verb == "timer":
        return Retry(msgspec.json.decode(raw, type=TimerPayload).timer)
    if verb == "cancel":
        return Cancel(msgspec.json.decode(raw, type=CancelPayload).reason)
    if verb == "renew":
        renew = msgspec.json.decode(raw, type=RenewPayload)
        return Renew(renew.operation, renew.reason)
    if verb == "compensate":
        return Compensate()
    if verb == "settle":
        return _settle(msgspec.json.decode(raw, type=SettlePayload), by_person=subject.issuer in PEOPLE)
    if verb == "restart":
        restart = msgspec.json.decode(raw, type=RestartPayload)
        return Restart(restart.keep, restart.reason)
    if verb == "answer":
        return msgspec.json.decode(raw, type=ChildAnswer)
    if verb in ("take-over", "hand-back"):
        reason = msgspec.json.decode(raw, type=ReasonPayload).reason
        return TakeOver(reason) if verb == "take-over" else HandBack(reason)
    if verb == "continue":
        return Continue()
    if verb == "exec":
        exec_ = msgspec.json.decode(raw, type=ExecPayload)
        return Exec(exec_.step, exec_.trigger)
    raise InvalidInput(f"there is no verb {verb!r}")


def _settle(payload: SettlePayload, *, by_person: bool) -> Settle:
    if by_person:
        return Settle(payload.operation, payload.outcome, "person", payload.evidence)
    return Settle(payload.operation, payload.outcome, payload.by, payload.evidence, payload.intent)

"""Decisions of system aggregates, as pure as those of runs and under the same commit protocol (DESIGN 4)."""

from collections.abc import Callable, Sequence
from typing import Any

from waybook.engine.aggregates import grants as g
from waybook.engine.aggregates.grants import Grants, grants_of
from waybook.engine.aggregates.judged import judged_of, raised
from waybook.engine.aggregates.ledger import ledger_of, reservation
from waybook.engine.aggregates.outcomes import is_counted
from waybook.engine.aggregates.policy import policy_of
from waybook.engine.aggregates.requests import (
    Admit,
    Asked,
    BlockSender,
    Body,
    ChangeGrant,
    ChangePolicy,
    Learn,
    Record,
    Reserve,
    SetKillSwitch,
    SetThread,
    SetThreshold,
    SettleReservation,
    TrustSender,
)
from waybook.engine.aggregates.sender import MOST_CATEGORIES, Rate, admit, sender_of
from waybook.engine.aggregates.thread import holds_change, holds_member, thread_of
from waybook.engine.fold import apply, seal
from waybook.engine.inputs import Accepted, Decision, Nothing, Outcome, Refused
from waybook.engine.run import Run
from waybook.engine.times import expired
from waybook.events import engine as e
from waybook.events.subjects import RunKey

MOST_MEMBERS = 10_000
"""How many runs one thread keeps; more make no conversation, and a commit has to stay small."""

MOST_LEVEL = 10
"""Steps of a threshold: more than the whole."""

Said = tuple[e.EngineEvent, ...] | Refused | Nothing


def decide_aggregate(
    key: RunKey, run: Run | None, asked: Sequence[Asked], now: int, grants: Grants | None = None
) -> Decision:
    """The events of one commit for all of `asked`, with one outcome each; looked at in order.

    `run` is the folded aggregate, None when its subject is empty; it stays as it is. `grants` are needed for what
    people ask of `@policy` and `@thread`; `@grants` itself is asked about itself.
    """
    events: list[e.EngineEvent] = []
    commands: list[str] = []
    outcomes: list[Outcome] = []
    version = (run.version if run is not None else 0) + 1
    after = run
    for one in asked:
        said = _decide_one(key, after, one, now, grants, version if events else version - 1)
        if not isinstance(said, tuple):
            outcomes.append(said)
            continue
        if after is run:
            after = run.copy() if run is not None else None
        for event in said:
            after = apply(after, event, f"{version}.{len(events)}", now, key)
            events.append(event)
        assert after is not None
        if one.command is not None:
            commands.append(one.command)
            after.applied[one.command] = version
        outcomes.append(Accepted())
    if events:
        assert after is not None
        seal(after, version, now, "", commands)
    return Decision(tuple(events), tuple(outcomes), tuple(commands), after)


def _decide_one(key: RunKey, run: Run | None, asked: Asked, now: int, grants: Grants | None, version: int) -> Said:
    if asked.command is not None and run is not None and asked.command in run.applied:
        return Nothing("applied")
    if asked.expires_at is not None and now > asked.expires_at:
        return Refused("expired", expired(asked.expires_at, now))
    if asked.if_version is not None and asked.if_version != version:
        return Refused("stale", f"the command holds for version {asked.if_version}, {key.agent} is at {version}")
    agent, decide = _DECIDERS[type(asked.body)]
    if key.agent not in agent:
        return Refused("unknown_verb", f"{key.agent} knows nothing of {type(asked.body).__name__}")
    word = _WORDS.get(type(asked.body))
    if word is not None:
        held = grants_of(run) if key.agent == "@grants" else grants
        assert held is not None, "who may decide is read before people are asked"
        if not held.may(asked.by, word):
            return Refused("not_permitted", f"{asked.by} does not hold the grant {word!r}{_holders(held, word)}")
    return decide(run, asked.body, asked.by, now)


def _holders(grants: Grants, word: str) -> str:
    people = grants.holders(word)
    return f"; held by {', '.join(people[:10])}" if people else ""


def _record(run: Run | None, body: Record, by: str, now: int) -> Said:
    if isinstance(body.fact, e.ThreadContextChanged):
        return Nothing("applied") if run is not None and holds_change(run, body.fact) else (body.fact,)
    if run is not None and holds_member(run, body.fact):
        return Nothing("applied")
    if run is not None and len(run.fields.get("members", ())) >= MOST_MEMBERS:
        return Nothing("full")
    return (body.fact,)


def _set_thread(run: Run | None, body: SetThread, by: str, now: int) -> Said:
    if thread_of(run).status == body.status:
        return Nothing("already_there")
    return (e.ThreadStatusSet(status=body.status, by=by, reason=body.reason),)


def _set_kill_switch(run: Run | None, body: SetKillSwitch, by: str, now: int) -> Said:
    if policy_of(run).kill_switch.on == body.on:
        return Nothing("already_there")
    return (e.KillSwitchSet(on=body.on, by=by, reason=body.reason),)


def _change_policy(run: Run | None, body: ChangePolicy, by: str, now: int) -> Said:
    values = policy_of(run).values
    if not body.values:
        return Refused("invalid_input", "a change of the policy names at least one value")
    if all(values.get(name) == value for name, value in body.values.items()):
        return Nothing("already_there")
    return (e.PolicyChanged(values=body.values, by=by, reason=body.reason),)


def _change_grant(run: Run | None, body: ChangeGrant, by: str, now: int) -> Said:
    known = grants_of(run)
    may = tuple(dict.fromkeys(body.may))
    if not body.person:
        return Refused("invalid_input", "a grant names a person")
    if known.version and known.people.get(body.person, ()) == may:
        return Nothing("already_there")
    people = {person: held for person, held in known.people.items() if person != body.person}
    if may:
        people[body.person] = may
    if not Grants(1, people).holders(g.GRANTS):
        text = f"nobody would hold the grant {g.GRANTS!r} any more, and nobody could give one again"
        return Refused("would_lock_out", f"{text}; grant it to somebody first")
    return (e.GrantChanged(person=body.person, may=may, by=by, reason=body.reason),)


def _reserve(run: Run | None, body: Reserve, by: str, now: int) -> Said:
    ledger = ledger_of(run)
    if ledger.holds(body.run, body.execution, now):
        return Nothing("already_there")
    if body.amount <= 0 or body.expires <= now:
        return Refused("invalid_input", "a reservation holds a positive amount until a time to come")
    taken = ledger.taken(now)
    if taken + body.amount > body.cap:
        return Refused("cap_reached", f"{taken} of {body.cap} are taken; {body.amount} more would be too much")
    return (e.Reserved(run=body.run, execution=body.execution, amount=body.amount, expires=body.expires),)


def _settle(run: Run | None, body: SettleReservation, by: str, now: int) -> Said:
    ledger = ledger_of(run)
    name = reservation(body.run, body.execution)
    before = ledger.settled.get(name)
    if before is not None:
        return Nothing("applied") if before == body.outcome else Refused("already_settled", f"{name} was {before}")
    if name not in ledger.held:
        return Refused("unknown_reservation", f"there is no reservation {name}")
    return (e.ReservationSettled(run=body.run, execution=body.execution, outcome=body.outcome),)


def _admit(run: Run | None, body: Admit, by: str, now: int) -> Said:
    place = admit(sender_of(run), body.run, Rate(body.per_minute, body.burst), now)
    return (place,) if place is not None else Nothing("already_there")


def _learn(run: Run | None, body: Learn, by: str, now: int) -> Said:
    fact = body.fact
    if isinstance(fact, e.OutcomeCounted):
        return Nothing("applied") if is_counted(run, fact) else (fact,)
    if isinstance(fact, e.ReplyJudged):
        moved = raised(judged_of(run), fact, now)  # of a sender nothing is counted by days
        return (fact, moved) if moved is not None else (fact,)
    if isinstance(fact, e.SenderBlockSet):
        return Nothing("already_there") if sender_of(run).block.on == fact.on else (fact,)
    return _trust(run, fact) if isinstance(fact, e.SenderTrustSet) else (fact,)


def _trust(run: Run | None, fact: e.SenderTrustSet) -> Said:
    known = sender_of(run).distrust
    if fact.trusted != (fact.category in known):
        return Nothing("already_there")
    if len(known) >= MOST_CATEGORIES and not fact.trusted:
        return Nothing("full")
    return (fact,)


def _block_sender(run: Run | None, body: BlockSender, by: str, now: int) -> Said:
    return _learn(run, Learn(e.SenderBlockSet(on=body.on, by=by, reason=body.reason)), by, now)


def _trust_sender(run: Run | None, body: TrustSender, by: str, now: int) -> Said:
    if not body.category:
        return Refused("invalid_input", "trust is given for a category of mails")
    return _trust(run, e.SenderTrustSet(category=body.category, trusted=body.trusted, by=by, reason=body.reason))


def _set_threshold(run: Run | None, body: SetThreshold, by: str, now: int) -> Said:
    if not 0 <= body.level <= MOST_LEVEL:
        return Refused("invalid_input", f"a threshold stands 0 to {MOST_LEVEL} steps above the settings'")
    if judged_of(run).level == body.level:
        return Nothing("already_there")
    return (e.ThresholdMoved(level=body.level, by=by, reason=body.reason),)


_LEDGERS = ("@budget", "@sender")
_DECIDERS: dict[type[Body], tuple[tuple[str, ...], Callable[[Run | None, Any, str, int], Said]]] = {
    Record: (("@thread",), _record),
    SetThread: (("@thread",), _set_thread),
    Admit: (("@sender",), _admit),
    Learn: (("@sender", "@outcomes", "@budget", "@category"), _learn),
    BlockSender: (("@sender",), _block_sender),
    TrustSender: (("@sender",), _trust_sender),
    SetThreshold: (("@category",), _set_threshold),
    SetKillSwitch: (("@policy",), _set_kill_switch),
    ChangePolicy: (("@policy",), _change_policy),
    ChangeGrant: (("@grants",), _change_grant),
    Reserve: (_LEDGERS, _reserve),
    SettleReservation: (_LEDGERS, _settle),
}
_WORDS: dict[type[Body], str] = {
    SetThread: g.THREAD,
    BlockSender: g.SENDERS,
    TrustSender: g.SENDERS,
    SetThreshold: g.POLICY,
    SetKillSwitch: g.KILL_SWITCH,
    ChangePolicy: g.POLICY,
    ChangeGrant: g.GRANTS,
}
"""What a person has to hold to ask for it."""

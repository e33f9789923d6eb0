"""Approvals: sealed contracts between a run and the people who decide on it (DESIGN 4). Pure.

A contract names one action on one resource with the digest of its parameters. It is asked for by a step
(`waybook.agents.approvals`) or by a state of the lifecycle table (`Table.contracts`), decided by a command, and used by
the intent of the operation that it covers, in the same commit. What is changed afterwards is asked for anew.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from waybook.engine.aggregates.grants import Grants
from waybook.engine.contract import Contract, NoContract
from waybook.engine.errors import RowFailed
from waybook.engine.inputs import Decide, Delivered, Output, Refused, World
from waybook.engine.recorder import Recorder
from waybook.engine.run import Approval, Run
from waybook.engine.times import iso
from waybook.events import engine as e

ABOUT = "approval:"
"""What a deadline's timer is about: this and the approval's name."""

EXPIRED = "expired"


class Answer(msgspec.Struct, frozen=True):
    """What the run is told of an approval: the event to publish, None where it asked for none."""

    approval: str
    output: Output | None


# --- asking


def ask(recorder: Recorder, contract: Contract) -> str:
    """Puts a contract before people; returns the approval's name. One for the same thing that stands is replaced.

    An undecided one with the same digest, and as many who may decide, stays as it is.
    """
    for name, standing in list(_standing(recorder.run)):
        if _is_same(standing, contract):
            return name
        if (standing.request.action, standing.request.resource) == (contract.action, contract.resource):
            revoke(recorder, name, "replaced")
    expires = recorder.now + contract.within_ms if contract.within_ms is not None else None
    known = recorder.world.policy
    name = recorder.record(
        e.ApprovalRequested(
            action=contract.action,
            resource=contract.resource,
            scope=contract.scope,
            digest=contract.digest,
            requester=contract.requester,
            deciders=contract.deciders,
            expires=expires,
            policy=known.version if known is not None else 0,
            answers=dict(contract.answers),
            summary=contract.summary,
        )
    )
    if expires is not None:
        recorder.record(e.TimerArmed(timer_class="deadline", due=expires, about=f"{ABOUT}{name}"))
    return name


def moved(recorder: Recorder, from_state: str) -> None:
    """The run went on from a state: what that state asked and nobody decided is taken back; the new one asks."""
    for name, standing in list(_standing(recorder.run)):
        if standing.decided is None and standing.request.requester == _of_state(from_state):
            revoke(recorder, name, "left")
    ask_for_state(recorder)


def ask_for_state(recorder: Recorder) -> None:
    """Asks for what the run's state has people approve; a contract of the state that is not the same is taken back.

    Also one that was approved: whoever comes back to the state, or changes what it is about, has it decided anew.
    """
    state = recorder.run.state
    contract = _contract(recorder)
    if contract is None:
        return
    if isinstance(contract, Contract):
        contract = msgspec.structs.replace(contract, requester=_of_state(state))
    for name, standing in list(_standing(recorder.run)):
        if standing.request.requester == _of_state(state) and not _is_same(standing, contract):
            revoke(recorder, name, "edited" if standing.request.digest != _digest(contract) else "asked_anew")
    if isinstance(contract, Contract):
        ask(recorder, contract)


def _contract(recorder: Recorder) -> Contract | NoContract | None:
    """What the table has people approve in the run's state; None: nothing. Raises RowFailed for whatever it raises."""
    state = recorder.run.state
    make = recorder.definition.table.contracts.get(state)
    if make is None:
        return None
    try:
        return make(recorder.run)
    except Exception as error:
        raise RowFailed(f"contract of {state}", error) from error


def _of_state(state: str) -> str:
    return f"state:{state}"


def _digest(contract: Contract | NoContract) -> str | None:
    return contract.digest if isinstance(contract, Contract) else None


def _is_same(standing: Approval, contract: Contract | NoContract) -> bool:
    """Whether an undecided approval is about the very same thing, and asks the same people."""
    if isinstance(contract, NoContract) or standing.decided is not None:
        return False
    asked = standing.request
    given = (asked.action, asked.resource, asked.scope, asked.digest, asked.deciders)
    return given == (contract.action, contract.resource, contract.scope, contract.digest, contract.deciders)


# --- taking back


def revoke(recorder: Recorder, name: str, reason: str) -> None:
    """Takes an approval back, decided or not, and its deadline with it."""
    recorder.record(e.ApprovalRevoked(approval=name, reason=reason))
    _cancel_deadline(recorder, name, reason)


def revoke_all(recorder: Recorder, reason: str) -> None:
    """Takes back every approval that is neither used nor refused."""
    for name, _ in list(_standing(recorder.run)):
        revoke(recorder, name, reason)


def _standing(run: Run) -> Iterator[tuple[str, Approval]]:
    """Approvals that are open, or approved and not yet used."""
    for name, approval in run.approvals.items():
        is_open = approval.revoked is None and approval.used_by is None
        if is_open and (approval.decided is None or approval.decided.decision == "approved"):
            yield name, approval


def _cancel_deadline(recorder: Recorder, name: str, reason: str) -> None:
    for timer, pending in list(recorder.run.timers.items()):
        if pending.about == f"{ABOUT}{name}":
            recorder.record(e.TimerCancelled(timer=timer, reason=reason))


# --- deciding


def open_approvals(run: Run) -> dict[str, Approval]:
    """Those that wait for a decision, in the order in which they were asked for."""
    if run.ended:
        return {}
    return {name: a for name, a in run.approvals.items() if a.decided is None and a.revoked is None}


def decide(recorder: Recorder, delivered: Delivered, body: Decide) -> Answer | Refused:
    """A person's decision. A refusal says why and leaves no trace.

    Whether it is late is told by the time at which COMMANDS got it, never by a worker's clock; between a deadline's
    timer and a decision the one that is committed first wins.
    """
    run = recorder.run
    if run.ended:
        return Refused("terminal", f"the run has ended as {run.outcome}")
    name = body.approval or _only_one(recorder)
    if isinstance(name, Refused):
        return name
    approval = run.approvals.get(name)
    if approval is None:
        return Refused("unknown_approval", f"run {recorder.key} asked for no approval {name}")
    policy, grants = recorder.world.policy, recorder.world.grants
    if policy is None or grants is None:
        return Refused("unread", "policy and grants were not read")
    refused = _refusal(approval, name, delivered, body, grants)
    if refused is not None:
        return refused
    by = delivered.command.actor
    if body.decision == "revoked":
        revoke(recorder, name, f"revoked by {by}" + (f": {body.reason}" if body.reason else ""))
        return Answer(name, None)
    recorder.record(
        e.ApprovalDecided(
            approval=name,
            decision=body.decision,
            by=by,
            received_at=delivered.received_at,
            policy=policy.version,
            grants=grants.version,
            reason=body.reason,
        )
    )
    if body.decision == "rejected":
        _cancel_deadline(recorder, name, "rejected")
    return Answer(name, _output(recorder, name, body.decision))


def _only_one(recorder: Recorder) -> str | Refused:
    """The approval that is meant where none is named."""
    run = recorder.run
    waiting = list(open_approvals(run))
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        return Refused("ambiguous", f"several approvals wait: {', '.join(waiting)}; name one")
    contract = _contract(recorder)
    if isinstance(contract, NoContract):
        return Refused(contract.reason, contract.text)
    if run.approvals:
        return next(reversed(run.approvals))
    return Refused("no_approval", f"nothing of this run waits for a decision; it is {run.state}")


def _refusal(approval: Approval, name: str, delivered: Delivered, body: Decide, grants: Grants) -> Refused | None:
    person, request = delivered.command.actor, approval.request
    if not delivered.person:
        return Refused("not_permitted", "a decision is a person's")
    if approval.revoked is not None:
        if approval.revoked == EXPIRED:
            return _late(name, request, delivered.received_at)
        return Refused("revoked", f"approval {name} does not stand any more ({approval.revoked})")
    if approval.used_by is not None:
        return Refused("already_used", f"approval {name} was used by {approval.used_by}")
    decided = approval.decided
    if decided is not None and not (body.decision == "revoked" and decided.decision == "approved"):
        return Refused(
            "already_decided", f"approval {name} was {decided.decision} by {decided.by} at {iso(decided.received_at)}"
        )
    if request.expires is not None and delivered.received_at >= request.expires:
        return _late(name, request, delivered.received_at)
    if body.digest is not None and body.digest != request.digest:
        return Refused("changed", f"what approval {name} stands for is not what was looked at; look again")
    return _foreign(request, person, grants)


def _late(name: str, request: e.ApprovalRequested, at: int) -> Refused:
    until = iso(request.expires) if request.expires is not None else "the deadline"
    return Refused(EXPIRED, f"approval {name} could be decided until {until}; the decision came at {iso(at)}")


def _foreign(request: e.ApprovalRequested, person: str, grants: Grants) -> Refused | None:
    """Whether the person may not decide: not among those who were asked, or without the grant."""
    if request.deciders and person not in request.deciders:
        return Refused("not_permitted", f"{person} is not among those who decide: {', '.join(request.deciders)}")
    if not grants.may_decide(person, request.action):
        return Refused("not_permitted", f"{person} does not hold the grant to decide on {request.action!r}")
    return None


def _output(recorder: Recorder, name: str, decision: str) -> Output | None:
    """The typed event that tells the run, with the fields that its type has. Raises RowFailed for a type that is gone."""
    approval = recorder.run.approvals[name]
    request, decided = approval.request, approval.decided
    event = request.answers.get(decision)
    if event is None:
        return None
    said: dict[str, Any] = {
        "approval": name,
        "decision": decision,
        "by": decided.by if decided is not None else None,
        "reason": decided.reason if decided is not None else None,
        "received_at": decided.received_at if decided is not None else None,
        "action": request.action,
        "resource": request.resource,
        "scope": request.scope,
        "digest": request.digest,
    }
    definition = recorder.definition
    schema = definition.schemas.get(event, 1)
    try:
        value = definition.decode(event, schema, msgspec.Raw(msgspec.json.encode(said)))
    except Exception as error:
        raise RowFailed(f"answer {event}", error) from error
    return Output(event, schema, msgspec.Raw(msgspec.json.encode(value)), value)


# --- deadlines


def deadline_of(run: Run, timer: str) -> str | None:
    """The approval whose deadline a pending timer is, None when it is none."""
    pending = run.timers.get(timer)
    if pending is None or not pending.about.startswith(ABOUT):
        return None
    return pending.about.removeprefix(ABOUT)


def expire(recorder: Recorder, timer: str, name: str) -> Answer:
    """The deadline's timer fired: an approval that was not used by then stands no more.

    The run is told only where nobody decided.
    """
    recorder.record(e.TimerFired(timer=timer))
    approval = recorder.run.approvals[name]
    if approval.revoked is not None or approval.used_by is not None:
        return Answer(name, None)
    recorder.record(e.ApprovalRevoked(approval=name, reason=EXPIRED))
    return Answer(name, _output(recorder, name, EXPIRED) if approval.decided is None else None)


# --- using


def check(
    run: Run, approval: str, *, operation: str, action: str, digest: str, at: int, world: World
) -> Refused | None:
    """Whether the operation with the key `operation` and this digest of its parameters may use an approval.

    `action` is the side effect's name: an approval covers the action that it names, and no other.

    None: it may; put `use` into the same commit as the intent. `at` is the receipt time of the command under which it
    happens, in ms, UTC. `world` holds policy and grants by the leader's word. An operation that used it before may
    use it again: its retry is the same use.
    """
    found = run.approvals.get(approval)
    if found is None:
        return Refused("unknown_approval", f"run {run.key} asked for no approval {approval}")
    request, decided = found.request, found.decided
    if found.used_by is not None and found.used_by != operation:
        return Refused("already_used", f"approval {approval} was used by {found.used_by}")
    if found.revoked is not None:
        return Refused("revoked", f"approval {approval} does not stand any more ({found.revoked})")
    if decided is None:
        return Refused("undecided", f"approval {approval} is not decided yet")
    if decided.decision != "approved":
        return Refused("rejected", f"approval {approval} was rejected by {decided.by}")
    if request.action != action:
        return Refused("other_action", f"approval {approval} was given for {request.action!r}, not for {action!r}")
    if request.digest != digest:
        return Refused("changed", f"approval {approval} was given for other parameters")
    if found.used_by == operation:
        return None
    if request.expires is not None and at >= request.expires:
        return Refused(EXPIRED, f"approval {approval} could be used until {iso(request.expires)}")
    if world.policy is None or world.grants is None:
        return Refused("unread", "policy and grants were not read")
    if world.policy.version != decided.policy:
        versions = f"it was {decided.policy}, now it is {world.policy.version}"
        return Refused("policy_changed", f"the policy changed after approval {approval} was given ({versions})")
    if not world.grants.may_decide(decided.by, request.action):
        return Refused("grant_gone", f"{decided.by}, who gave approval {approval}, may not decide on it any more")
    return None


def find(run: Run, action: str, digest: str) -> str | None:
    """The approval that stands for this action with these very parameters: the newest that was given, else None."""
    for name, approval in reversed(run.approvals.items()):
        given = approval.decided is not None and approval.decided.decision == "approved"
        if (
            given
            and approval.revoked is None
            and (approval.request.action, approval.request.digest) == (action, digest)
        ):
            return name
    return None


def use(run: Run, approval: str, operation: str) -> tuple[e.EngineEvent, ...]:
    """What stands in the same commit as the intent of the operation: the use, and the end of the deadline.

    Nothing where this operation used it before.
    """
    if run.approvals[approval].used_by == operation:
        return ()
    timers = [timer for timer, pending in run.timers.items() if pending.about == f"{ABOUT}{approval}"]
    cancelled = (e.TimerCancelled(timer=timer, reason="used") for timer in timers)
    return (e.ApprovalUsed(approval=approval, operation=operation), *cancelled)

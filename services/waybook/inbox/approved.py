"""The state `approved`: its undo window, what calls a send back, and what a send's end means (pipeline-spec 4, 12)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from waybook.agents.ledgers import Reservation
from waybook.engine import approvals
from waybook.engine.contract import Contract, NoContract
from waybook.engine.definition import FAILED, KILL_SWITCH_ON, IntentGuard, Objection, Row, Window
from waybook.engine.inputs import Retry, World
from waybook.engine.run import Run
from waybook.engine.telling import Telling
from waybook.engine.windows import pending
from waybook.events import engine as e
from waybook.inbox import events as ev
from waybook.inbox.judged import tell_approved
from waybook.inbox.reply import EFFECT, reply_of
from waybook.inbox.returned import tell_sent
from waybook.inbox.route import Routed

ACTION = EFFECT
HUMAN_DELAY_S, AUTO_DELAY_S = 15, 60
MOST_HUMAN_DELAY_S, MOST_AUTO_DELAY_S = 120, 3_600
"""Seconds of the undo window; the policy's `human_delay_seconds` and `auto_delay_seconds` name others."""

SEND = "send"
"""The step that sends."""

STARTED = "send_started"
"""The field that says that the window of this approval is over."""


DRAFT_STATUS = {"draft_ready": "pending", "approved": "approved", "rejected": "rejected", "sent": "sent"}
"""What a conversation shows of its newest draft, by the state that the run enters."""


# --- what is approved


def reply_contract(run: Run) -> Contract | NoContract:
    """What a person approves in `draft_ready`: this reply, to the sender recorded at intake, word for word."""
    reply = reply_of(run)
    if reply is None:
        return NoContract("no_draft", "there is no draft to decide on")
    to = ", ".join(reply.to)
    return Contract(
        action=ACTION,
        resource=f"mailto:{to}",
        digest=reply.digest,
        answers={"approved": ev.DraftApproved.__name__, "rejected": ev.DraftRejected.__name__},
        summary=f"reply to {to or 'an unknown sender'}: {reply.subject}"[:200],
    )


# --- the window


def _delay_ms(run: Run, world: World) -> int:
    """How long the reply can still be called back. What the policy says is clamped; what is no number is not taken."""
    values = world.policy.values if world.policy is not None else {}
    if run.fields.get("approval_source") == "human":
        name, default, most = "human_delay_seconds", HUMAN_DELAY_S, MOST_HUMAN_DELAY_S
    else:
        name, default, most = "auto_delay_seconds", AUTO_DELAY_S, MOST_AUTO_DELAY_S
    given = values.get(name)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return round(min(max(given, 0), most) * 1000) if is_number and given is not None else default * 1000


def _due(run: Run) -> dict[str, Any]:
    """What leaves when the window is over, and the approval that covers it."""
    reply = reply_of(run)
    source = "human" if run.fields.get("approval_source") == "human" else "auto"
    approval = approvals.find(run, ACTION, reply.digest) if reply is not None and source == "human" else None
    held = run.fields.get("reservations") if source == "auto" else None
    reservation = msgspec.convert(held[-1], Reservation).name if held else None
    edited = bool(run.fields.get("is_draft_edited"))
    return {"reply": reply, "approval": approval, "source": source, "reservation": reservation, "edited": edited}


WINDOW = Window(
    event=ev.SendDue.__name__,
    fields=_due,
    delay_ms=_delay_ms,
    is_over=lambda run: bool(run.fields.get(STARTED)),
)


def in_window(run: Run, event: Any, world: World) -> bool:
    """Whether the reply can be called back: its timer has not fired."""
    return pending(run) is not None


# --- what stops a send


def _is_stopped(run: Run, event: Any, world: World) -> bool:
    return world.policy is not None and world.policy.kill_switch.on


def has_newer_mail(run: Run, world: World) -> bool:
    """Whether a mail joined the conversation that nobody who approved the reply can have seen."""
    if world.thread is None:
        return False
    newer = set(world.thread.newer_than(run.key.run))
    seen_until = _decided_at(run)
    return any(str(m["run"]) in newer and int(m.get("at") or 0) > seen_until for m in world.thread.members)


def _decided_at(run: Run) -> int:
    """When a person approved the reply last (ms, UTC); 0 where none did."""
    if run.fields.get("approval_source") != "human":
        return 0
    decided = [a.decided.received_at for a in run.approvals.values() if a.decided is not None]
    return max(decided, default=0)


def _not_begun(run: Run, event: Any, world: World) -> bool:
    """Whether surely no send of this run is out or on its way."""
    return all(operation.outcome in ("failed", "absent") for operation in run.operations.values())


def _is_outdated(run: Run, event: Any, world: World) -> bool:
    return has_newer_mail(run, world)


def may_go_unattended(run: Run, event: ev.AutoApproved, world: World) -> bool:
    """Asked in the commit that approves: nothing has changed since the gates agreed."""
    if world.policy is None or world.thread is None or has_newer_mail(run, world):
        return False
    return world.policy.values.get("auto_reply") is not False


def holds_human_text(run: Run) -> bool:
    """Whether a person wrote or approved the reply that stands: no machine replaces it, and none lets another go."""
    return bool(run.fields.get("is_draft_edited")) or run.fields.get("approval_source") == "human"


def _objects(run: Run, world: World, approval: str | None) -> Objection | None:
    """Looked at when the send is intended: who approved, and whether the conversation went on meanwhile."""
    if run.state != "approved":
        return "not_approved", f"the reply is {run.state}, not approved"
    if not run.fields.get(STARTED):
        return "not_approved", "its undo window is not over"
    if run.fields.get("approval_source") == "human" and approval is None:
        return "approval_missing", "no standing approval covers this very reply"
    if has_newer_mail(run, world):
        return "thread_reply", "a newer mail of the conversation came in"
    return _said_not_arrived(run)


def _said_not_arrived(run: Run) -> Objection | None:
    """A person's word that it did not arrive ends the send that it was about; another one is approved anew."""
    running = {run.actions[a].execution for a in run.open}
    for operation in run.operations.values():
        ended = operation.by == "person" and operation.outcome in ("failed", "absent")
        before = run.actions.get(operation.intent.action)
        if ended and operation.intent.name == EFFECT and before is not None and before.execution in running:
            return "not_arrived", "a person said that it did not arrive"
    return None


GUARD = IntentGuard(objects=_objects, reads=("thread",))


def why_no_undo(run: Run) -> Objection | None:
    """What a person is told who calls back what cannot be called back any more, or not yet."""
    if run.state == "sent" or (run.state == "approved" and pending(run) is None):
        return "already_sent", "the undo window is over"
    return None if run.state == "approved" or run.ended else ("not_approved", f"the reply is {run.state}")


def why_no_save(run: Run) -> Objection | None:
    """An edit comes too late once the reply is on its way, and too early before there is a draft."""
    if run.state == "approved":
        return ("already_sent", "the undo window is over") if pending(run) is None else None
    if run.state == "draft_ready" or run.ended:
        return None
    text = f"the mail is {run.state}; a text is saved where a reply waits for a decision, or may still be called back"
    return "illegal_edge", f"{text}: `retry --how review` brings a failed one there" if run.state == FAILED else text


def why_no_release(run: Run) -> Objection | None:
    """Only what is kept is let go."""
    if run.state == "quarantined" or run.ended:
        return None
    return "illegal_edge", f"the mail is {run.state}; only a quarantined one is released"


# --- fields


def back(reason: str) -> Mapping[str, Any]:
    """Fields of a reply that goes back to people."""
    return {"approval_source": None, "cancel_reason": reason, STARTED: None}


def _stopped(run: Run, event: Any) -> Mapping[str, Any]:
    return back("kill_switch")


def _outdated(run: Run, event: Any) -> Mapping[str, Any]:
    return back("thread_reply")


def _is_current(run: Run, event: Any, world: World) -> bool:
    """Whether it is about this approval, and not about an earlier one that was called back meanwhile."""
    return bool(run.fields.get(STARTED))


def _withheld(run: Run, event: ev.SendWithheld) -> Mapping[str, Any]:
    return back(event.reason)


def _recalled(run: Run, event: ev.SendCancelled) -> Mapping[str, Any]:
    return back(event.reason)


def _begun(run: Run, event: ev.SendDue) -> Mapping[str, Any]:
    return {STARTED: True}


def _sent(run: Run, event: ev.ReplySent) -> Mapping[str, Any]:
    return {"sent_message_id": event.message_id, "cancel_reason": None}


def _send_failed(run: Run, event: ev.ReplyFailed) -> Mapping[str, Any]:
    return {"error_message": event.text, "failed_stage": "send"}


def _step_failed(run: Run, event: Any) -> Mapping[str, Any]:
    return {"error_message": event.error.text, "failed_stage": "send"}


def _auto(run: Run, event: ev.AutoApproved) -> Mapping[str, Any]:
    return {
        "agent_decision": _decision(event.routed),
        "approval_source": "auto",
        "reservations": msgspec.to_builtins(event.routed.reservations) or None,
        STARTED: None,
    }


def _decision(routed: Routed) -> dict[str, Any]:
    """The decision as people read it: what it was charged to stands beside it."""
    said: dict[str, Any] = msgspec.to_builtins(routed)
    del said["reservations"]
    return said


def _not_auto(gate: str, reason: str, event: ev.AutoApproved) -> Mapping[str, Any]:
    objected = msgspec.structs.replace(event.routed, decision="human_review", gate=gate, reason=reason)
    return {"agent_decision": _decision(objected)}


def _is_outranked(run: Run, event: ev.AutoApproved, world: World) -> bool:
    return holds_human_text(run)


def _outranked(run: Run, event: ev.AutoApproved) -> Mapping[str, Any]:
    return _not_auto("human_text", "a person's text stands beside a new proposal", event)


def _stopped_before(run: Run, event: ev.AutoApproved) -> Mapping[str, Any]:
    return _not_auto("kill_switch", "the kill switch is on", event)


def _changed_before(run: Run, event: ev.AutoApproved) -> Mapping[str, Any]:
    return _not_auto("changed", "the conversation, the draft or the policy changed since the gates were asked", event)


def _by_person(run: Run, event: ev.DraftApproved) -> Mapping[str, Any]:
    return {"approval_source": "human", "approved_by": event.by, "cancel_reason": None, STARTED: None}


def _resent(run: Run, event: Any) -> Mapping[str, Any]:
    return {"approval_source": "human", "error_message": None, "failed_stage": None, STARTED: None}


def _redrafted(run: Run, event: Any) -> Mapping[str, Any]:
    """What a person approved stays the draft, as what they wrote does: the new text stands beside it."""
    kept = {"is_draft_edited": True} if holds_human_text(run) else {}
    return {"approval_source": None, "error_message": None, "failed_stage": None, STARTED: None, **kept}


# --- a person tries again

RESEND, REVIEW, REDRAFT_IT = "resend", "review", "redraft"
"""Ways in which a person may try again (pipeline-spec 9.8)."""


def _is_resend(run: Run, event: Retry, world: World) -> bool:
    """A person tries a failed send again, of a text that a person approved (E24)."""
    failed = run.fields.get("failed_stage") == "send" and run.fields.get("approval_source") == "human"
    return event.timer is None and event.how in (None, RESEND) and failed and bool(run.fields.get("draft_response"))


def is_repeat(run: Run, event: Retry, world: World) -> bool:
    """Everything else goes on where it failed; a reply that nobody approved and that failed is drafted anew."""
    return event.how is None and not _is_redraft(run, event, world)


def _is_redraft(run: Run, event: Retry, world: World) -> bool:
    """A person asks for it, or the reply that failed was approved by nobody."""
    failed = run.fields.get("failed_stage") == "send" and run.fields.get("approval_source") == "auto"
    return event.timer is None and (event.how == REDRAFT_IT or (event.how is None and failed))


def _is_review(run: Run, event: Retry, world: World) -> bool:
    """A person wants to see the reply, as far as there is one, before anything more is done."""
    return event.timer is None and event.how == REVIEW


def _to_review(run: Run, event: Any) -> Mapping[str, Any]:
    return {"error_message": None, "failed_stage": None, **back("review")}


# --- what was charged and came to nothing


def give_back(run: Run, event: Any, now: int) -> Sequence[Telling]:
    """An unattended reply does not leave after all: its charges count no more. Not where a send may be out."""
    if run.fields.get("approval_source") != "auto" or not _not_begun(run, event, World()):
        return ()
    return _released(run, msgspec.convert(run.fields.get("reservations") or (), tuple[Reservation, ...]))


def _never_left(run: Run, event: ev.AutoApproved, now: int) -> Sequence[Telling]:
    """The gates agreed and charged, and the commit did not."""
    return _released(run, event.routed.reservations)


def _tell_sent(run: Run, event: ev.ReplySent, now: int) -> Sequence[Telling]:
    """An unattended reply counts for the breaker, a person's for the scorecards."""
    return (*tell_sent(run, event, now), *tell_approved(run, event, now))


def _released(run: Run, held: Sequence[Reservation]) -> Sequence[Telling]:
    return [
        Telling(
            one.agent,
            one.run,
            e.ReservationSettled.__name__,
            e.ReservationSettled(run=run.key.run, execution=one.execution, outcome="released"),
        )
        for one in held
    ]


APPROVING = (
    # A person's text outranks a re-run: it stays, the new one is a proposal beside it, and nothing approves itself.
    Row("E14_outranked", "drafting", "AutoApproved", "draft_ready", _is_outranked, _outranked, tells=_never_left),
    # Asked when the decision is committed: much may have changed since the gates agreed.
    Row(
        "E14_stopped",
        "drafting",
        "AutoApproved",
        "draft_ready",
        _is_stopped,
        _stopped_before,
        reads=("policy",),
        tells=_never_left,
    ),
    Row("E15", "drafting", "AutoApproved", "approved", may_go_unattended, _auto, reads=("policy", "thread")),
    Row("E14_changed", "drafting", "AutoApproved", "draft_ready", fields=_changed_before, tells=_never_left),
    Row("E16", "draft_ready", "DraftApproved", "approved", fields=_by_person),
)
"""How a reply comes to be approved."""

SENDING = (
    Row(
        "E20_stopped",
        "approved",
        KILL_SWITCH_ON,
        "draft_ready",
        _not_begun,
        _stopped,
        reads=("policy",),
        tells=give_back,
    ),
    Row("E20_braked", "approved", "SendDue", "draft_ready", _is_stopped, _stopped, reads=("policy",), tells=give_back),
    Row(
        "E20_outdated",
        "approved",
        "SendDue",
        "draft_ready",
        _is_outdated,
        _outdated,
        reads=("thread",),
        tells=give_back,
    ),
    Row("send", "approved", "SendDue", fields=_begun),
    Row("E19", "approved", "ReplySent", "sent", fields=_sent, tells=_tell_sent),
    Row("E20", "approved", "SendCancelled", "draft_ready", in_window, _recalled, tells=give_back),
    Row("E20_withheld", "approved", "SendWithheld", "draft_ready", _is_current, _withheld, tells=give_back),
    Row("F_send", "approved", "ReplyFailed", "failed", fields=_send_failed, tells=give_back),
    Row("F_sending", "approved", "StepFailed", "failed", fields=_step_failed),
    Row("E24", "failed", "RetryRequested", "approved", _is_resend, _resent, direct=False),
    Row("T_review", "failed", "RetryRequested", "draft_ready", _is_review, _to_review, direct=False, tells=give_back),
)
"""What becomes of an approved reply."""


def sends(run: Run, event: Any) -> list[str]:
    """Sends that have ended: what was due in an earlier walk does not leave in the next one."""
    return [action.id for action in run.actions.values() if action.walk == run.walk and action.step == SEND]


REDRAFT = Row(
    "E21_redraft",
    "failed",
    "RetryRequested",
    "received",
    _is_redraft,
    _redrafted,
    restart=True,
    keeps=sends,
    tells=give_back,
)

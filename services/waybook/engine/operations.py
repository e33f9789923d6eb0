"""Operations: external side effects, each with a key, an intent before the call and an outcome after it (DESIGN 4).

The rules, all of them here:

* A key holds neither attempt nor parameters, so whoever comes next meets what was intended before.
* An intent is committed before the call. It is refused when its action is not under way any more, the run has ended,
  the kill switch is on, its approval does not hold, its reservation is gone, or its step's time is over.
* While nobody knows what came of an intent, nothing else is intended under its key: the old parameters are asked for.
* Found ends an operation at any time. Absent counts only from a side that surely knows, asked when no call can take
  effect any more: after the call's deadline, what the adapter needs to settle, and a margin between clocks.
* Outcomes are facts: they are taken from anybody, also in ended runs. A second, different one is kept as disputed, and
  from then on only a person moves the operation.
"""

from typing import Literal

import msgspec

from waybook.engine import approvals
from waybook.engine.aggregates.ledger import reservation_parts
from waybook.engine.dispatch import begin_or_offer, may_begin
from waybook.engine.inputs import Accepted, Nothing, Outcome, Refused
from waybook.engine.intents import CALL_MS, UNDO, Effect, Intend, Park, Renew, Settle
from waybook.engine.recorder import Holder, Recorder
from waybook.engine.run import Action, Operation, Run
from waybook.engine.times import iso
from waybook.events import engine as e

FIRST_ASK_MS = 30_000
LONGEST_ASK_MS = 3_600_000
"""How long a reconcile job waits before it asks the other side again: as long as it has waited so far, within these."""

WAKE_MS = 5_000
"""A run that waits for a fact is woken by whoever brought it; if that one dies first, by a timer so much later."""

COMPENSATION = "compensate:"
"""What begins the `action` of an undoing that a command began, before the command's id."""

CLOCK_MARGIN_MS = 5_000
"""How far the clocks of two workers may be apart."""


def operation_key(run: Run, action: Action, intend: Intend) -> str:
    """The key of an operation within its run: by execution, name and ordinal, or by the author's own key."""
    if intend.undoes is not None:
        return UNDO + intend.undoes
    if intend.key is None:
        return f"{action.execution}/{intend.name}/{intend.ordinal}"
    scope = f"{action.step}/{intend.name}/{intend.key}"
    return f"{scope}/{run.generations.get(scope, 1)}"


def is_open(operation: Operation) -> bool:
    """Whether nobody knows yet what came of it, or two that know contradict each other."""
    return operation.outcome in (None, "unknown") or bool(operation.disputed)


def decide_effect(recorder: Recorder, one: Effect) -> Outcome:
    """The outcome of an input about side effects."""
    if isinstance(one, Intend):
        return intend(recorder, one)
    return park(recorder, one) if isinstance(one, Park) else settle(recorder, one)


# --- intending


def intend(recorder: Recorder, one: Intend) -> Outcome:
    """Commits an intent, or says what is known of an earlier one.

    Accepted: call now. `intended`: this very intent is stored already, call now. `settled`: the run holds the outcome.
    `unresolved`: an earlier intent has to be reconciled first.
    """
    run = recorder.run
    action = run.actions.get(one.action)
    if run.ended:
        return Refused("cancelled", f"the run has ended as {run.outcome}")
    if action is None or action.status != "running":
        status = action.status if action is not None else "unknown"
        return Refused("lease_lost", f"action {one.action} is {status}: another attempt goes on, or none")
    key = operation_key(run, action, one)
    known = run.operations.get(key)
    if known is not None:
        if is_open(known):
            mine = known.intent.action == one.action and known.outcome is None and not known.disputed
            return Nothing("intended" if mine else "unresolved")
        if known.outcome == "succeeded":
            return Nothing("settled")
    refused = _refusal(recorder, one, action, key, known)
    if refused is not None:
        return refused
    if one.approval is not None:
        for event in approvals.use(run, one.approval, key):
            recorder.record(event)
    recorder.record(
        e.OperationIntended(
            key=key,
            name=one.name,
            action=one.action,
            digest=one.digest,
            params=one.params,
            deadline=recorder.now + one.call_ms,
            approval=one.approval,
            reservation=one.reservation,
            generation=_generation(run, action, one),
        )
    )
    return Accepted()


def _generation(run: Run, action: Action, one: Intend) -> int:
    return run.generations.get(f"{action.step}/{one.name}/{one.key}", 1) if one.key is not None else 1


def _refusal(recorder: Recorder, one: Intend, action: Action, key: str, known: Operation | None) -> Refused | None:
    if _kill_switch(recorder):
        return Refused("kill_switch", "the kill switch is on: no side effect begins")
    guard = recorder.definition.table.intents.get(one.name)
    objection = guard.objects(recorder.run, recorder.world, one.approval) if guard is not None else None
    if objection is not None:
        return Refused(*objection)
    if recorder.now >= action.deadline:
        return Refused("deadline", f"the time of step {action.step} is over")
    if one.reservation is not None and not _is_reserved(recorder, one.reservation):
        return Refused("reservation_gone", f"nothing is held for it any more ({one.reservation})")
    earlier = known or _earlier_generation(recorder.run, key)
    if one.approval is None and earlier is not None and earlier.intent.approval is not None:
        text = f"{earlier.intent.key} was intended under approval {earlier.intent.approval}; give one again"
        return Refused("approval_missing", text)
    if one.approval is None:
        return None
    at = one.received_at if one.received_at is not None else recorder.now
    return approvals.check(
        recorder.run, one.approval, operation=key, action=one.name, digest=one.digest, at=at, world=recorder.world
    )


def _is_reserved(recorder: Recorder, reservation: str) -> bool:
    """Whether what was reserved for this run is still held, or was used: given back or run out, it may be another's."""
    ledger = (recorder.world.ledgers or {}).get(reservation)
    execution = reservation_parts(reservation)[2]
    return ledger is not None and ledger.holds(recorder.key.run, execution, recorder.now)


def _earlier_generation(run: Run, key: str) -> Operation | None:
    scope, _, generation = key.rpartition("/")
    return run.operations.get(f"{scope}/{int(generation) - 1}") if scope in run.generations else None


# --- settling


def settle(recorder: Recorder, one: Settle, holder: Holder | None = None, *, person: str | None = None) -> Outcome:
    """Takes an outcome. `holder`: the command that brought it, under which what waited for it goes on. `person`: whose
    word it is.

    Accepted says with `wakes` that something waits for the operation and nobody took it up: a fact holds no command.
    """
    known = recorder.run.operations.get(one.key)
    if known is None:
        return Refused("unknown_operation", f"run {recorder.key} has no operation {one.key}")
    if person is not None:
        refused = _refuse_person(recorder, one, known)
        if refused is not None:
            return refused
    elif one.intent is not None and one.intent != known.intended_as:
        # An earlier intent was replaced because it surely did nothing. It did something after all?
        return _dispute(recorder, one, known) if one.outcome == "succeeded" else Nothing("settled")
    elif known.outcome not in (None, "unknown") and one.outcome != known.outcome:
        return _contradict(recorder, one, known)
    before = len(recorder.events)
    if one.outcome != known.outcome or person is not None:
        evidence = one.evidence if person is None else {**one.evidence, "person": person}
        recorder.record(e.OperationSettled(key=one.key, outcome=one.outcome, by=one.by, evidence=evidence))
    wakes = _go_on(recorder, one, holder) if not is_open(recorder.run.operations[one.key]) else False
    makes = _undo_next(recorder, known) if known.outcome != "succeeded" == one.outcome else ()
    if not one.ask_again:
        _cancel_timers(recorder, one.key, "for_a_person")
    if len(recorder.events) > before:
        return Accepted(wakes=(one.key,) if wakes else (), makes=makes)
    return Nothing("settled")


def _refuse_person(recorder: Recorder, one: Settle, known: Operation) -> Refused | None:
    """A person knows what arrived, but not what a worker that fell silent may still send."""
    if not is_open(known):
        return Refused("already_settled", f"{one.key} is {known.outcome}, by {known.by}")
    over = known.intent.deadline + CLOCK_MARGIN_MS
    if one.outcome != "succeeded" and known.by != "call" and recorder.now < over:
        return Refused("under_way", f"a call for {one.key} may be under way until {iso(over)}; say so after that")
    return None


def _contradict(recorder: Recorder, one: Settle, known: Operation) -> Outcome:
    """`unknown` contradicts nothing, and `failed` and `absent` say the same: it did not happen."""
    if one.outcome == "unknown" or "succeeded" not in (one.outcome, known.outcome):
        return Nothing("settled")
    return _dispute(recorder, one, known)


def _dispute(recorder: Recorder, one: Settle, known: Operation) -> Outcome:
    if one.outcome in known.disputed:
        return Nothing("settled")
    recorder.record(e.OperationDisputed(key=one.key, outcome=one.outcome, by=one.by, evidence=one.evidence))
    return Accepted()


def _go_on(recorder: Recorder, one: Settle, holder: Holder | None) -> bool:
    """What waits for the operation goes on; whether it still waits, since nobody here may begin it."""
    waiting = [action for action, about in recorder.run.waiting.items() if about == one.key]
    if waiting and holder is None:
        if not any(armed.about == one.key for armed in recorder.run.timers.values()):
            due = recorder.now + WAKE_MS
            recorder.record(e.TimerArmed(timer_class="wait", due=due, about=one.key))
        return True
    _cancel_timers(recorder, one.key, "settled")
    if holder is not None and may_begin(recorder.definition, recorder.run):
        for action in waiting:
            take_up(recorder, recorder.run.actions[action], holder)
    return False


def take_up(recorder: Recorder, action: Action, holder: Holder) -> None:
    """Begins the next attempt of an execution that waited for an operation."""
    step = recorder.definition.steps[action.step]
    begin_or_offer(recorder, step, action.trigger, action.bindings, holder, branch=action.branch)


def settled_waits(run: Run) -> list[Action]:
    """Attempts that waited for an operation which is settled by now, and that nobody took up."""
    return [
        run.actions[a]
        for a, about in run.waiting.items()
        if about in run.operations and not is_open(run.operations[about])
    ]


def _cancel_timers(recorder: Recorder, key: str, reason: str) -> None:
    for timer in [t for t, armed in recorder.run.timers.items() if armed.about == key]:
        recorder.record(e.TimerCancelled(timer=timer, reason=reason))


def renew(recorder: Recorder, one: Renew, by: str) -> Outcome:
    """A deliberate second effect under an author's key; it is made when the step runs again, under an approval of its own."""
    known = recorder.run.operations.get(one.operation)
    if known is None:
        return Refused("unknown_operation", f"run {recorder.key} has no operation {one.operation}")
    if recorder.run.ended:
        return Refused("terminal", f"the run has ended as {recorder.run.outcome}")
    scope, _, generation = one.operation.rpartition("/")
    if ":" in scope.partition("/")[0]:
        return Refused("invalid_input", f"{one.operation} is counted by its execution: it has no key of its own")
    if is_open(known):
        return Refused("unresolved", f"settle {one.operation} first")
    if recorder.run.generations.get(scope, 1) != int(generation):
        return Nothing("nothing_due")
    recorder.record(
        e.OperationRenewed(operation=one.operation, generation=int(generation) + 1, by=by, reason=one.reason)
    )
    return Accepted()


# --- undoing by command


def compensate(recorder: Recorder, command: str) -> Outcome:
    """Undoes what the run has done, the latest first, one after the other; no body of a step has to run for it.

    Accepted says with `makes` what to call now; the outcome of each brings the next. One that fails or is unknown stops
    it, and the same command of a person goes on there.
    """
    run = recorder.run
    if run.ended:
        return Refused("terminal", f"the run has ended as {run.outcome}")
    if any(a.status == "running" for a in run.open_actions()):
        return Refused("under_way", "a step of the run is under way")
    unsettled = [key for key, operation in run.operations.items() if is_open(operation)]
    if unsettled:
        return Refused("unresolved", f"settle {', '.join(unsettled)} first")
    if _kill_switch(recorder):
        return Refused("kill_switch", "the kill switch is on: no side effect begins")
    key = _to_undo(run)
    return Accepted(makes=_undo(recorder, key, COMPENSATION + command)) if key is not None else Nothing("nothing_due")


def _to_undo(run: Run) -> str | None:
    for key, operation in reversed(run.operations.items()):
        undone = run.operations.get(UNDO + key)
        done = operation.outcome == "succeeded" and not key.startswith(UNDO) and not operation.disputed
        if done and (undone is None or undone.outcome != "succeeded"):
            return key
    return None


def _undo(recorder: Recorder, key: str, action: str) -> tuple[str, ...]:
    done = recorder.run.operations[key].intent
    undoing = e.OperationIntended(
        key=UNDO + key,
        name=UNDO + done.name,
        action=action,
        digest=done.digest,
        params=done.params,
        deadline=recorder.now + CALL_MS,
    )
    recorder.record(undoing)
    due = undoing.deadline + CLOCK_MARGIN_MS
    recorder.record(e.TimerArmed(timer_class="wait", due=due, about=undoing.key))
    return (undoing.key,)


def _undo_next(recorder: Recorder, known: Operation) -> tuple[str, ...]:
    """An undoing by command succeeded: the next one begins, unless the run has ended or the kill switch is on."""
    if not known.intent.action.startswith(COMPENSATION) or recorder.run.ended or _kill_switch(recorder):
        return ()
    key = _to_undo(recorder.run)
    return _undo(recorder, key, known.intent.action) if key is not None else ()


def _kill_switch(recorder: Recorder) -> bool:
    policy = recorder.world.policy
    return policy is not None and policy.kill_switch.on


# --- waiting


def park(recorder: Recorder, one: Park) -> Outcome:
    """Ends an attempt that waits for an operation; its execution goes on when that is settled."""
    action = recorder.run.actions.get(one.action)
    if action is None or action.status != "running":
        return Refused("lease_lost", f"action {one.action} is not under way")
    known = recorder.run.operations.get(one.key)
    if known is None or not is_open(known):
        return Nothing("settled")
    if known.outcome is None:
        recorder.record(e.OperationSettled(key=one.key, outcome="unknown", by="find", evidence=one.evidence))
    if (
        one.until is not None
        and not known.disputed
        and not any(t.about == one.key for t in recorder.run.timers.values())
    ):
        recorder.record(e.TimerArmed(timer_class="wait", due=one.until, about=one.key))
    recorder.record(e.ActionReleased(action=one.action, reason="wait", until=one.until, about=one.key))
    return Accepted()


def is_reconcile(run: Run, timer: str) -> bool:
    """Whether a pending timer says when to ask what came of an operation."""
    armed = run.timers.get(timer)
    return armed is not None and armed.about in run.operations


def ask(recorder: Recorder, timer: str, holder: Holder) -> Outcome:
    """A reconcile timer fired. Accepted says with `asks` which operation to look for; the next timer is armed already."""
    key = recorder.run.timers[timer].about
    recorder.record(e.TimerFired(timer=timer))
    known = recorder.run.operations[key]
    if not is_open(known):
        _go_on(recorder, Settle(key, known.outcome or "unknown", "find"), holder)
        return Accepted()
    if known.disputed:  # nobody but a person ends that
        return Accepted()
    waited = recorder.now - known.intent.deadline
    due = recorder.now + min(max(waited, FIRST_ASK_MS), LONGEST_ASK_MS)
    recorder.record(e.TimerArmed(timer_class="wait", due=due, about=key))
    return Accepted(asks=(key,))


def leave_to_reconcile(recorder: Recorder, exhausted: Action | None = None) -> None:
    """No body will ask any more, since the run ends, or the step of an `exhausted` action is out of attempts.

    What is still open of its operations is unknown from now on, and asked for by timers of its own.
    """
    actions = recorder.run.actions
    reason = "the run ended" if exhausted is None else f"{exhausted.step} is out of attempts"
    asked = {timer.about for timer in recorder.run.timers.values()}
    for key, known in list(recorder.run.operations.items()):
        if not is_open(known) or known.disputed or key in asked:
            continue
        intended_by = actions.get(known.intent.action)  # None: by a command, which undoes
        if exhausted is not None and not _is_for(exhausted, key, intended_by):
            continue
        if known.outcome is None:
            evidence = {"reason": f"{reason} before its outcome came"}
            recorder.record(e.OperationSettled(key=key, outcome="unknown", by="find", evidence=evidence))
        due = max(recorder.now, known.intent.deadline + CLOCK_MARGIN_MS)
        recorder.record(e.TimerArmed(timer_class="wait", due=due, about=key))


def _is_for(exhausted: Action, key: str, intended_by: Action | None) -> bool:
    """Whether the body of that action would have asked for the operation: its execution's, or its step's by the author's key."""
    same_execution = intended_by is not None and intended_by.execution == exhausted.execution
    return same_execution or key.startswith(f"{exhausted.step}/")


# --- what an answer of the other side means

Found = Literal["found", "absent", "unsure"]


class Wait(msgspec.Struct, frozen=True):
    """Nothing is settled yet; ask again at `until` (ms UTC), None: nobody can be asked, so a person has to say."""

    until: int | None


def verdict(
    found: Found,
    *,
    authoritative: bool,
    asked_at: int,
    deadline: int,
    settle_ms: int,
    margin_ms: int = CLOCK_MARGIN_MS,
    again: bool = True,
) -> Literal["succeeded", "absent"] | Wait:
    """What an answer of `find` means, asked at `asked_at` for an intent with that `deadline` (all ms UTC).

    Absent counts when the other side surely knows and was asked after the last moment at which a call could take effect.
    """
    if found == "found":
        return "succeeded"
    if not again:
        return Wait(None)
    certain_at = deadline + settle_ms + margin_ms
    if found == "absent" and authoritative:
        return "absent" if asked_at >= certain_at else Wait(certain_at)
    return Wait(certain_at if asked_at < certain_at else asked_at + FIRST_ASK_MS)

"""Leases: what a process owes to the deliveries it holds, by the claim rules (DESIGN 4, "Claims").

Pure: the walker and the model that is tested against thousands of interleavings share this code. A process
that walks a run keeps, for each command, the claim of the newest delivery it has of it (`held`), and the
actions whose body runs here or whose result still waits here to be decided (`here`). It does seven things:

0. A delivery that `is_expired` is dropped before every try to decide it.
1. A delivery of a command that it already holds is decided as `Delivered(..., held=<the claim held>)`; the newer
   claim and handle then take the place of the older, whose handle is dropped without a word.
2. It asks COMMANDS for the sequences that `questions` names and gives those that are gone to the decision.
3. After every commit and every reload it does what `reconcile` says: starts bodies, cancels bodies.
4. Then `settle` says, for every delivery decided and for every one held, what becomes of it.
5. At a graceful stop it cancels its bodies, decides `Released`, and does what `give_back` says.
6. A decision on a delivery whose command is among its `suspects` is not stored before all else that runs in the
   process has ended; until that command's run rests again, no other delivery is decided (rule 9).

Before a decision that appended nothing is acted on, its run must be confirmed by the leader (DESIGN 3). A
delivery whose heartbeat broke (the last one that surely reached the server is older than ack_wait) may be in
other hands: `broken`. Its bodies go on, since their results are fenced, but none is started under it, its
heartbeats stay away so that the command comes again, it is never given back, and it answers nothing on a decision
that appended nothing. While the outcome of an append is unknown, nothing else is decided, reconciled or settled for
the run: the same inputs are decided again on the run read anew.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from waybook.engine.inputs import Accepted, Continue, Decision, Delivered, Input, Nothing, Outcome, Refused
from waybook.engine.run import Action, Run, execution_key, is_lost
from waybook.events.engine import Claim, StepBegan

PATIENCE_MS = 30_000
"""How long a machine's command waits for the run or timer that it speaks of; a person is refused at once."""

AGAIN_MS = 1_000
"""How long to wait before such a command is decided again."""


class Ack(msgspec.Struct, frozen=True):
    """Applied or refused, and nothing under it is open: answer, then acknowledge, then stop the heartbeats."""


class Keep(msgspec.Struct, frozen=True):
    """Actions under it are open and run here: answer, heartbeats go on, nothing else is sent."""


class Silent(msgspec.Struct, frozen=True):
    """It may be in other hands: stop its heartbeats, send no answer, no ack, no nak, no term."""


class Again(msgspec.Struct, frozen=True):
    """Not yet: heartbeats go on, no answer; decide it again after `delay_ms` on a freshly read run."""

    delay_ms: int = AGAIN_MS


class Bury(msgspec.Struct, frozen=True):
    """It killed its workers too often and the run says so: to DEAD with `reason`, answer, then term."""

    reason: str


class Forward(msgspec.Struct, frozen=True):
    """The run is another definition's: publish the command under `lane`, then acknowledge; no answer.

    The acknowledgement is left out when the lease broke in between: it would take the message from whoever runs it
    by then, and the copy in the lane would take over.
    """

    lane: str


class GiveBack(msgspec.Struct, frozen=True):
    """Its actions are released by a stored commit: nak it."""


Next = Ack | Keep | Silent | Again | Bury | Forward


class Work(msgspec.Struct, frozen=True):
    """Bodies to start and bodies to cancel (action ids)."""

    start: tuple[Action, ...]
    cancel: tuple[str, ...]


def reconcile(run: Run | None, held: Mapping[str, Claim], here: Collection[str]) -> Work:
    """What the stored run asks of the bodies in this process.

    Starts every running action whose claim is the one held, also when its begin was stored without this process
    seeing it (an append of unknown outcome). Cancels what is ended, abandoned, or in other hands.
    """
    if run is None:
        return Work((), tuple(here))
    mine = {a.id: a for a in run.open_actions() if a.status == "running" and held.get(a.command) == a.claim}
    start = tuple(a for a in mine.values() if a.id not in here)
    return Work(start, tuple(a for a in here if a not in mine and not _runs_on(run, a)))


def _runs_on(run: Run, action: str) -> bool:
    """Whether a body may finish although nobody takes its result: the run ended beside it, and nothing is raised into it.

    It was in this process's own hands until then: an attempt lost to another worker counts as a failure.
    """
    if not run.ended:
        return False
    known = run.actions.get(action)
    return known is not None and known.status == "abandoned" and not known.failures


def questions(run: Run | None, inputs: Sequence[Input], here: Collection[str]) -> frozenset[int]:
    """Sequences of commands that COMMANDS has to be asked for before `inputs` are decided (`World.gone`).

    For `continue` those of all open actions that do not run here; for a command that stands in COMMANDS more than
    once (moved to another lane, or sent again) those under which its actions began.
    """
    if run is None or not run.open:
        return frozenset()
    asked: set[int] = set()
    for one in inputs:
        if not isinstance(one, Delivered):
            continue
        for action in run.open_actions():
            moved = action.command == one.command.id and action.claim.sequence != one.claim.sequence
            if moved or (isinstance(one.body, Continue) and action.id not in here):
                asked.add(action.claim.sequence)
    return frozenset(asked)


def is_expired(run: Run | None, command: str, claim: Claim, *, broken: bool) -> bool:
    """Whether a delivery is to be dropped undecided and in silence: its lease lapsed while it waited here.

    A newer delivery may be in a live worker's hands, and taking actions over would take them from it. A delivery
    that already holds actions (an append of unknown outcome was stored) is decided all the same.
    """
    if not broken:
        return False
    return run is None or not any(a.command == command and a.claim == claim for a in run.open_actions())


def settle(
    run: Run | None,
    command: str,
    claim: Claim,
    outcome: Outcome | None = None,
    *,
    broken: bool = False,
    waited_ms: int = 0,
    patience_ms: int = PATIENCE_MS,
) -> Next:
    """What becomes of the delivery `claim` of `command` (rules 3 and 4).

    `run` is the run as stored, or as confirmed by the leader when nothing was appended. `outcome` is given for a
    delivery that was just decided, None for one that is held and whose actions' results were. `waited_ms` counts
    from the command's receipt.
    """
    if outcome == Nothing("elsewhere") or (_not_yet(outcome) and waited_ms < patience_ms):
        return Again()
    if outcome == Nothing("no_worker") and run is not None and not broken:
        return Forward(run.definition)
    if outcome in (Nothing("superseded"), Nothing("unknown_timer"), Nothing("no_worker")):
        return Silent()
    mine = [a for a in run.open_actions() if a.command == command] if run is not None else []
    if any(a.claim > claim for a in mine):
        return Silent()
    if mine:
        return Keep()
    if run is not None and command in run.convicted:
        return Bury(run.convicted[command])
    applied = run is not None and command in run.applied
    if broken and not applied and not isinstance(outcome, Accepted):
        return Silent()
    return Ack()


def give_back(run: Run | None, command: str, claim: Claim, *, broken: bool = False) -> GiveBack | Ack | Silent:
    """What becomes of a held delivery at a graceful stop, after the commit that released its actions."""
    mine = [a for a in run.open_actions() if a.command == command] if run is not None else []
    if run is not None and not mine and command in run.applied and command not in run.convicted:
        return Ack()
    if broken or any(a.claim > claim or (a.claim == claim and a.status == "running") for a in mine):
        return Silent()
    return GiveBack()


def is_suspect(run: Run | None, command: str) -> bool:
    """Whether a worker was lost under this command: it then runs alone in its process (rule 9)."""
    if run is None:
        return False
    return any(a.command == command and is_lost(a) for a in run.actions.values())


def suspects(decision: Decision) -> frozenset[str]:
    """Commands under which `decision` begins what may kill its process; they have to wait until they run alone.

    Those are commands under which a worker was lost, and those that give an execution its next attempt after a loss,
    whoever lost it: `continue`, or a person's retry of a convicted run.
    """
    run = decision.run
    if run is None or not run.failures:  # a loss counts as a failure
        return frozenset()
    began = [event for event in decision.events if isinstance(event, StepBegan)]
    if not began:
        return frozenset()
    lost = {(a.execution, a.attempt) for a in run.actions.values() if is_lost(a)}
    return frozenset(
        event.command
        for event in began
        if (execution_key(event.walk, event.step, event.trigger), event.attempt - 1) in lost
        or is_suspect(run, event.command)
    )


def _not_yet(outcome: Outcome | None) -> bool:
    """Whether the command may have overtaken what it speaks of: a run, a timer."""
    if isinstance(outcome, Refused):
        return outcome.reason == "message_not_found"
    return outcome == Nothing("unknown_timer")

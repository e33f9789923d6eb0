"""Runs of a definition that a worker does not carry: what it may say of them all the same (DESIGN 3, "lanes").

Nothing here asks the worker's own definition, which knows neither the run's steps nor its states.
"""

from waybook.engine.inputs import Continue, Delivered, Exec, Input, Nothing, Outcome, Refused, Retry, Start
from waybook.engine.intents import Settle
from waybook.engine.run import Run
from waybook.engine.times import expired

NO_WORKER = Nothing("no_worker")


def decide_foreign(run: Run, one: Input, now: int) -> Outcome:
    """The outcome of an input that does not depend on the run's definition, else `no_worker`: it is the lane's.

    Whoever has the command of a foreign run and gets `no_worker` for it publishes it under the run's lane.
    """
    if not isinstance(one, Delivered):
        return NO_WORKER
    command = one.command
    if command.id in run.applied:
        return _applied(run, one)
    if command.expires_at is not None and now > command.expires_at:
        return Refused("expired", expired(command.expires_at, now))
    if isinstance(one.body, Start):
        return already_started(run, one.body)
    if run.ended and not run.open:
        return _after_the_end(run, one)
    return NO_WORKER


def already_started(run: Run, start: Start) -> Outcome:
    """A start for a run that is there: a repetition, or another content under the same name."""
    if start.content is not None and run.content not in (None, start.content):
        return Refused("message_id_reused", f"run {run.key} was started by other content")
    return Nothing("already_there")


def _applied(run: Run, delivered: Delivered) -> Outcome:
    mine = [a for a in run.open_actions() if a.command == delivered.command.id]
    if not mine:
        return Nothing("applied")
    return Nothing("superseded") if any(a.claim > delivered.claim for a in mine) else NO_WORKER


def _after_the_end(run: Run, delivered: Delivered) -> Outcome:
    body = delivered.body
    if isinstance(body, Settle) or (isinstance(body, Retry) and body.timer in run.timers):
        return NO_WORKER  # operations outlive their run
    if isinstance(body, Continue | Exec) or (isinstance(body, Retry) and body.timer is not None):
        return Nothing("nothing_due")
    return Refused("terminal", f"the run has ended as {run.outcome}")

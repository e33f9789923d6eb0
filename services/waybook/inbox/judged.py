"""What people make of drafts, told to the scorecards by which rules of autonomy and thresholds go (pipeline-spec 7.6, 12).

It is told when the answer has left, not when it was approved: what is called back within its undo window teaches nothing.
"""

from collections.abc import Sequence

from waybook.engine.aggregates.keys import category_key, sender_key
from waybook.engine.run import Run
from waybook.engine.telling import Telling
from waybook.events import engine as e
from waybook.events.aggregate import Verdict
from waybook.inbox import events as ev
from waybook.inbox.reply import author_of
from waybook.inbox.returned import category_of
from waybook.inbox.route import WOULD_HAVE_LEFT


def tell_approved(run: Run, event: ev.ReplySent, now: int) -> Sequence[Telling]:
    """A reply left that a person approved, as it was drafted or not."""
    if run.fields.get("approval_source") != "human":
        return ()
    return _told(run, "edited" if run.fields.get("is_draft_edited") else "approved", now)


def tell_rejected(run: Run, event: ev.DraftRejected, now: int) -> Sequence[Telling]:
    """A person refused the draft."""
    return _told(run, "rejected", now)


def _told(run: Run, verdict: Verdict, now: int) -> Sequence[Telling]:
    category, address = category_of(run), author_of(run)
    gate = (run.fields.get("agent_decision") or {}).get("gate")
    matched = verdict == "approved" and gate in WOULD_HAVE_LEFT
    fact = e.ReplyJudged(category=category, verdict=verdict, run=run.key.run, at=now, matched=matched)
    keys = [category_key(run.key.tenant, category)]
    if address:
        keys.append(sender_key(run.key.tenant, address))
    return [Telling(key.agent, key.run, e.ReplyJudged.__name__, fact) for key in keys]

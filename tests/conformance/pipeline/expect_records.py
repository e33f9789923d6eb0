"""What must hold of effects, of what waits for people, of what models were given, and of other records."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import history as h
from tests.conformance.pipeline import threads
from tests.conformance.pipeline.compare import Differences, differences
from tests.conformance.pipeline.expect import reads
from tests.conformance.pipeline.expect_senders import sender_called
from tests.conformance.pipeline.expect_sends import cancelled_sends, config_after, latest_status
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.product import TENANT
from tests.conformance.pipeline.world import World

from waybook.engine.aggregates.keys import policy_key
from waybook.engine.aggregates.policy import policy_of
from waybook.engine.hold import why
from waybook.events import engine as e
from waybook.events.commit import event_name
from waybook.inbox.followups import follow_ups
from waybook.inbox.reply import author_of
from waybook.services.walker.lifecycle import Lifecycle

WORDS = {"MailReleased": "released", "SenderBlocked": "sender_blocked"}
"""Acts of people, by the event that stands for them."""

CALLED_BACK = "auto_send_cancelled"

PEOPLES_HOLDS = frozenset({"waiting", "reconciling", "dead command"})
TIMERS = frozenset({"send", "deadline", "retry", "wait"})
"""Reasons of a hold that a timer ends."""


@reads("searches")
async def _searches(world: World, value: Any) -> Differences:
    """Searches made, by source: their names in order, or a number for each."""
    made = world.sources.searches
    if isinstance(value, Mapping):
        return differences(value, {**dict.fromkeys(value, 0), **Counter(made)})
    return differences(value, made)


@reads("effects")
async def _effects(world: World, value: Any) -> Differences:
    counts: Counter[str] = Counter()
    for history in await world.histories():
        since = world.since(history)
        counts["pipeline_start"] += h.pipeline_starts(history, since)
        counts.update(f"enqueue_step:{kind}" for kind in h.enqueued(history, since))
        counts["schedule_send"] += sum(t.timer_class == "send" for t in history.events(e.TimerArmed, since))
        counts.update(_followed(history, since))
    counts["record_feedback:any"] = sum(
        counts[f"record_feedback:{word}"] for word in ("approved", "edited", "rejected")
    )
    unread = [k for k in value if k not in EFFECTS and not k.startswith("enqueue_step:")]
    if unread:
        raise Unsupported(f"expect.effects.{', '.join(unread)}: not read yet")
    return differences(value, {**dict.fromkeys(value, 0), **counts})


EFFECTS = frozenset(
    {"pipeline_start", "schedule_send", "knowledge_extraction", "code_task", "timeline_mirror"}
    | {"record_feedback:any", "record_feedback:approved", "record_feedback:edited", "record_feedback:rejected"}
    | {"outcome_feedback:bounce", "outcome_feedback:complaint"}
)
FOLLOWED = {"outcome_bounced": "outcome_feedback:bounce", "outcome_complained": "outcome_feedback:complaint"}


def _followed(history: h.History, since: int) -> list[str]:
    """What consumers of the log are to do outside, each id once; arranged history has been done."""
    ids: dict[str, str] = {}
    before: set[str] = set()
    for commit, _, _ in history.commits:
        names = [event_name(commit.version, index) for index in range(len(commit.events))]
        for one in follow_ups(history.key, names, commit.events):
            if commit.version <= since:
                before.add(one.id)
            else:
                ids[one.id] = FOLLOWED.get(one.kind, one.kind.replace("feedback_", "record_feedback:"))
    return [kind for name, kind in ids.items() if name not in before]


@reads("calls")
async def _calls(world: World, value: Any) -> Differences:
    """What other sides were called for, by effect: the parameters in order, or how often."""
    found: dict[str, Any] = {}
    for name, expected in value.items():
        made = [dict(c.params) for c in world.effects.calls if c.name == name]
        found[name] = len(made) if isinstance(expected, int) else made
    return differences(value, found)


@reads("call_order")
async def _call_order(world: World, value: Any) -> Differences:
    return differences(value, [c.name for c in world.effects.calls])


@reads("audit")
async def _audit(world: World, value: Any) -> Differences:
    """How often what the auditor reads in STATE tells of such an act, arranged history left out."""
    counts: Counter[str] = Counter()
    retries = {
        t.command for t in world.traffic.commands.values() if re.fullmatch(r".*\.(gw|cli)\..*\.retry", t.subject)
    }
    for history in await world.histories():
        since = world.since(history)
        counts.update(WORDS[x.event] for x in history.events(e.EventPublished, since) if x.event in WORDS)
        counts.update(f"draft_{x.decision}" for x in history.events(e.ApprovalDecided, since))
        counts["retried"] += sum(len(retries & set(c.commands)) for c, _, _ in history.commits if c.version > since)
        counts["settled"] += sum(x.by == "person" for x in history.events(e.OperationSettled, since))
    called_back: Any = await cancelled_sends(world)
    unread = set(value) - {*WORDS.values(), "draft_approved", "draft_rejected", "retried", "settled", CALLED_BACK}
    if unread:
        raise Unsupported(f"expect.audit.{', '.join(sorted(unread))}: not read yet")
    found: dict[str, Any] = {**dict.fromkeys(value, 0), **counts}
    if CALLED_BACK in value:
        found[CALLED_BACK] = called_back
    return differences(value, found)


@reads("config_after")
async def _config_after(world: World, value: Any) -> Differences:
    """The owner's switches as they stand for the next decision."""
    run = await Lifecycle(world.backend.ports.state, world.codec, world.clock, "reader").load(policy_key(TENANT))
    stopped = policy_of(run).kill_switch.on
    return differences(value, config_after(world.case.given.get("config") or {}, stopped=stopped))


@reads("blocklist")
async def _blocklist(world: World, value: Any) -> Differences:
    """Addresses of the senders whom people blocked, as intake finds them."""
    authors = {author_of(h.run) for h in await world.histories() if h.run is not None}
    blocked = [a for a in authors if a and (await sender_called(world, a)).block.on]
    return differences(value, sorted(set(blocked)))


@reads("thread")
async def _thread(world: World, value: Any) -> Differences:
    """The thread of the case, as `@thread` has it."""
    unread = set(value) - {"status", "latestDraftStatus"}
    if unread:
        raise Unsupported(f"expect.thread.{', '.join(sorted(unread))}: not read yet")
    found: dict[str, Any] = {"latestDraftStatus": await latest_status(world)}
    if "status" in value:
        found["status"] = (await threads.read(world, world.case.given["thread"])).status
    return differences(value, found)


@reads("listed_for_human")
async def _listed_for_human(world: World, value: Any) -> Differences:
    """A person has to act, and `why` says so: the run is held for something that no timer and no worker will end."""
    listed = [await _waits_for_person(world, message) for message in world.messages.values()]
    return differences(value, bool(listed) and all(listed))


async def _waits_for_person(world: World, message: Message) -> bool:
    run = (await world.history(message.key)).run
    if run is None:
        return False
    answer = why(world.definition.engine, run, scheduler=True)
    held = answer.hold
    return held.kind in PEOPLES_HOLDS and held.reason not in TIMERS and bool(answer.next_move)


@reads("blocked_by")
async def _blocked_by(world: World, value: Any) -> Differences:
    """Number of runs whose `why` names that blocker."""
    counts: Counter[str] = Counter(dict.fromkeys(value, 0))
    for history in await world.histories():
        if history.run is not None:
            reason = why(world.definition.engine, history.run, scheduler=True).hold.reason
            counts[reason or history.run.fields.get("archive_reason") or ""] += 1
    return differences(value, dict(counts))


@reads("dead_letters")
async def _dead_letters(world: World, value: Any) -> Differences:
    return differences(value, len(world.traffic.buried) - world.mark.buried)


def _model_inputs(world: World) -> str:
    return "\n\n".join(text for _, text in world.models.calls)


@reads("model_input_must_contain")
async def _model_input_must_contain(world: World, value: Any) -> Differences:
    """In any text that was given to any model in the case."""
    given = _model_inputs(world)
    return [f"{part!r} was given to no model" for part in value if part not in given]


@reads("model_input_must_not_contain")
async def _model_input_must_not_contain(world: World, value: Any) -> Differences:
    given = _model_inputs(world)
    return [f"{part!r} was given to a model" for part in value if part in given]


@reads("model_input_must_not_match")
async def _model_input_must_not_match(world: World, value: Any) -> Differences:
    given = _model_inputs(world)
    patterns = [value] if isinstance(value, str) else value
    return [f"{pattern!r} matches what was given to a model" for pattern in patterns if re.search(pattern, given)]


@reads("model_calls")
async def _model_calls(world: World, value: Any) -> Differences:
    return differences(value, len(world.models.calls) - world.mark.model_calls)


@reads("model_calls_min")
async def _model_calls_min(world: World, value: Any) -> Differences:
    made = len(world.models.calls) - world.mark.model_calls
    return [] if made >= value else [f"{made} calls, at least {value} expected"]


@reads("writers")
async def _writers(world: World, value: Any) -> Differences:
    return differences(value, world.writers)


@reads("auto_send_allowed")
async def _auto_send_allowed(world: World, value: Any) -> Differences:
    """Walked on with auto_reply true, shadow false and a draft score of 1.0: whether it is approved automatically."""
    message = world.message()
    await world.permit_sending()
    world.gate.open(lambda body: body.run == message.key)
    await world.hand_over(message)
    await world.settle()
    world.gate.close()
    approved = ("drafting", "approved") in h.transitions(await world.history(message.key), message.arranged)
    return differences(value, approved)

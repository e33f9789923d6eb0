"""Route's decision with what it has to ask for: the brakes, and last the ledgers, whose charge decides."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence

import msgspec

from waybook.agents.ledgers import Ledgers, Reservation
from waybook.inbox.brakes import Brakes, Trial, Unreadable, read
from waybook.inbox.route import Routed, RouteFacts, RouteSettings, branches, objected, route
from waybook.inbox.settings import DAILY

HOUR_S = 3_600
DAY_S = 86_400
THREAD_S = 30 * DAY_S
"""How long unattended replies of one conversation are counted together."""


async def decide(facts: RouteFacts, settings: RouteSettings, brakes: Brakes, ledgers: Ledgers, *, now: int) -> Routed:
    """Whether a person decides or the reply goes unattended.

    Where automatic replies are off nothing is asked for. Shadow mode charges nothing. Raises PortError.
    """
    each = branches(facts)
    if settings.auto_reply or settings.autonomy:
        each = tuple([await _with_brakes(one, brakes, now) for one in each])
    routed = route(each[0], settings, others=each[1:])
    if routed.decision != "auto_approve":
        return routed
    trial = await read(brakes.trial(now))
    if isinstance(trial, Unreadable):
        return objected(routed, "breaker", f"breakers: {trial.text}")
    held: list[Reservation] = []
    objection = await _charge(held, facts, trial, _ledgers_of(each, settings), settings, ledgers)
    if objection is None:
        return msgspec.structs.replace(routed, reservations=tuple(held))
    for reservation in held:
        await ledgers.release(reservation)
    return objected(routed, *objection)


async def _charge(
    held: list[Reservation],
    facts: RouteFacts,
    trial: Trial | None,
    scopes: Mapping[str, int],
    settings: RouteSettings,
    ledgers: Ledgers,
) -> tuple[str, str] | None:
    """Charges one after the other; the gate that objects and its reason, None where all were charged."""
    if trial is not None and not await _hold(held, ledgers.charge(trial.scope, cap=trial.cap)):
        return "breaker", "the breaker is half-open, and its trials are used up"
    for gate, about, cap, within_s, what in _rates(facts, settings):
        if not await _hold(held, ledgers.rate(about, cap=cap, within_s=within_s)):
            return gate, f"{cap} replies went {what}; it may be a machine"
    for scope, cap in scopes.items():
        if not await _hold(held, ledgers.charge(scope, cap=cap)):
            return "daily_cap", f"the daily cap of {cap} is reached"
    return None


def _rates(facts: RouteFacts, settings: RouteSettings) -> Iterator[tuple[str, str, int, int, str]]:
    """Gate, whose rate, its cap, its time in seconds, and in words. A machine that answers may change its address with
    each mail, or begin a conversation with each."""
    sender, host = facts.sender, facts.sender.rpartition("@")[2]
    yield "sender_rate", sender, settings.sender_daily_cap, DAY_S, "to this address within a day"
    yield "domain_rate", f"@{host}", settings.domain_hourly_cap, HOUR_S, f"to addresses at {host} within an hour"
    if facts.thread:
        yield "thread_rate", f"thread/{facts.thread}", settings.thread_cap, THREAD_S, "out in this conversation"


async def _hold(held: list[Reservation], charge: Awaitable[Reservation | None]) -> bool:
    reservation = await charge
    if reservation is not None:
        held.append(reservation)
    return reservation is not None


def _ledgers_of(each: Sequence[RouteFacts], settings: RouteSettings) -> dict[str, int]:
    """The ledgers that one reply is charged to, each once, with their caps: those of the rules for its intents."""
    found: dict[str, int] = {}
    for one in each:
        rule = settings.rule_for(one.sender, one.classification.main.category) if settings.autonomy else None
        scope, cap = (rule.scope, rule.daily_cap) if rule is not None else (DAILY, settings.daily_cap)
        found[scope] = cap
    return found


async def _with_brakes(facts: RouteFacts, brakes: Brakes, now: int) -> RouteFacts:
    sender, category = facts.sender, facts.classification.main.category
    return msgspec.structs.replace(
        facts,
        breaker=await read(brakes.open_breaker()),
        spend_exhausted=await read(brakes.spend_exhausted()),
        in_working_hours=await read(brakes.in_working_hours(now)),
        plugin_objection=await read(brakes.objection(sender, category)),
        shadow=await read(brakes.shadow()),
        matched=await read(brakes.matched(sender, category)),
        distrust=await read(brakes.distrust(sender, category)),
        tightened=await read(brakes.tightened(category)),
    )

"""The work of route: whether a person decides, or every gate lets the reply go (spec, section 7.6).

By default nothing goes out unattended. The first objection wins and is kept as the reason; a gate that cannot be
evaluated objects.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from waybook.agents.ledgers import Reservation
from waybook.events.subjects import digest_token
from waybook.inbox.brakes import Unreadable
from waybook.inbox.classify import Classification
from waybook.inbox.draft import Draft
from waybook.inbox.scan.findings import SecurityFlags
from waybook.inbox.scan.phrases import has_override
from waybook.inbox.secrets import holds_secret

Decision = Literal["auto_approve", "human_review"]


class Routed(msgspec.Struct, frozen=True, kw_only=True):
    """Output of route. `gate` names the gate that objected; `shadow`: it would have been approved automatically.

    `reservations`: what was charged for it, and is given back when it does not leave.
    """

    decision: Decision
    reason: str
    gate: str | None = None
    confidence: float = 0.0
    shadow: bool = False
    reservations: tuple[Reservation, ...] = ()


class AutonomyRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For one category, or one sender's mails of it: what may leave unattended where autonomy is on."""

    category: str
    sender: str | None = None
    threshold: float = 0.8
    daily_cap: int = 100
    enabled: bool = True

    @property
    def scope(self) -> str:
        """The ledger that counts what left under this rule today."""
        return f"rule-{digest_token('rule', self.category, (self.sender or '').lower())[:20]}"


class RouteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's choices. Shadow mode decides and then asks a person all the same.

    With `autonomy` the rules decide instead of `auto_reply`, `threshold` and `daily_cap`; `warm_up`: how many decisions
    in shadow mode people have to have agreed with before. `sender_daily_cap`: unattended replies to one address a day;
    `domain_hourly_cap`: to all addresses of one host in an hour; `thread_cap`: in one conversation; `longest_thread`:
    mails of a conversation after which people take over. They end loops of machines.
    """

    auto_reply: bool = False
    shadow: bool = True
    threshold: float = 0.8
    daily_cap: int = 100
    without_guard: bool = False
    autonomy: bool = False
    autonomy_rules: tuple[AutonomyRule, ...] = ()
    warm_up: int = 3
    sender_daily_cap: int = 5
    domain_hourly_cap: int = 3
    thread_cap: int = 3
    longest_thread: int = 20

    def rule_for(self, sender: str, category: str) -> AutonomyRule | None:
        """The rule that stands for a mail: a sender's own before that of the category."""
        alike = [rule for rule in self.autonomy_rules if rule.category == category]
        own = (r for r in alike if r.sender is not None and r.sender.lower() == sender.lower())
        return next(own, None) or next((r for r in alike if r.sender is None), None)


class RouteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What route decides on, read before: gates look at nothing else. `shadow` None: as the settings say."""

    classification: Classification
    draft: Draft
    flags: SecurityFlags
    sender: str = ""
    thread: str = ""
    released: bool = False
    message_id_reused: bool = False
    auto_send_blocked: bool = False
    breaker: str | Unreadable | None = None
    spend_exhausted: bool | Unreadable = False
    in_working_hours: bool | Unreadable = True
    plugin_objection: str | Unreadable | None = None
    shadow: bool | Unreadable | None = None
    matched: int | Unreadable | None = None
    distrust: str | Unreadable | None = None
    tightened: int | Unreadable = 0
    mails_before: int = 0


def objected(routed: Routed, gate: str, reason: str) -> Routed:
    """The decision after one more gate objected to it."""
    return msgspec.structs.replace(routed, decision="human_review", gate=gate, reason=reason)


Gate = Callable[[RouteFacts, RouteSettings], str | None]


def branches(facts: RouteFacts) -> tuple[RouteFacts, ...]:
    """The facts of each intent by itself; the draft, which answers all of them, is the same."""
    whole = facts.classification
    if len(whole.intents) == 1:
        return (facts,)
    alone = (msgspec.structs.replace(whole, intents=(intent,)) for intent in whole.intents)
    return tuple(msgspec.structs.replace(facts, classification=one) for one in alone)


def route(
    facts: RouteFacts,
    settings: RouteSettings,
    gates: Sequence[tuple[str, Gate]] = (),
    others: Sequence[RouteFacts] = (),
) -> Routed:
    """The decision. `gates` are asked after the built-in ones.

    `others` are the facts of further intents (`branches`): the strictest decides, so one objection is enough.
    """
    score = facts.draft.quality.score if facts.draft.quality else 0.0
    for name, gate in (*GATES, *gates):
        for one in (facts, *others):
            objection = _asked(gate, one, settings)
            if objection is not None:
                return Routed(decision="human_review", reason=objection, gate=name, confidence=score)
    if (settings.shadow if facts.shadow is None else facts.shadow) is not False:
        return Routed(
            decision="human_review",
            reason="shadow mode: it would have been sent",
            gate="shadow",
            confidence=score,
            shadow=True,
        )
    return Routed(decision="auto_approve", reason="every gate agreed", confidence=score)


def _asked(gate: Gate, facts: RouteFacts, settings: RouteSettings) -> str | None:
    try:
        return gate(facts, settings)
    except Exception as error:  # noqa: BLE001 - a gate that cannot be evaluated objects
        return f"the gate could not be evaluated ({type(error).__name__})"


def unanswerable(reason: str) -> Routed:
    """The decision where no draft was written at all."""
    return Routed(decision="human_review", reason=reason, gate="message")


def _breaker(facts: RouteFacts, settings: RouteSettings) -> str | None:
    if isinstance(facts.breaker, Unreadable):
        return f"breakers: {facts.breaker.text}"
    return f"the breaker {facts.breaker} is open" if facts.breaker else None


def _auto_reply(facts: RouteFacts, settings: RouteSettings) -> str | None:
    return None if settings.auto_reply or settings.autonomy else "automatic replies are off"


STEP = 0.1
"""How much a step raises a category's threshold."""

WOULD_HAVE_LEFT = frozenset({"shadow", "warm_up"})
"""Gates that are asked when no other one objects: what they keep for a person would have left."""


def tightened(threshold: float, level: int) -> float:
    """A category's threshold after so many steps."""
    return min(1.0, round(threshold + STEP * level, 3))


def _autonomy(facts: RouteFacts, settings: RouteSettings) -> str | None:
    """What the rules of autonomy say, where they decide."""
    if not settings.autonomy:
        return None
    category = facts.classification.main.category
    rule = settings.rule_for(facts.sender, category)
    if rule is None:
        return f"no rule lets {category} go unattended"
    return None if rule.enabled else f"the rule for {rule.sender or category} is switched off"


def _warm_up(facts: RouteFacts, settings: RouteSettings) -> str | None:
    """Where rules decide, people have to have agreed with what would have left; asked last, so that nothing else stood
    against it."""
    if not settings.autonomy:
        return None
    if isinstance(facts.matched, Unreadable):
        return f"the scorecard: {facts.matched.text}"
    if facts.matched is None:
        return "it is the first contact with this sender"
    if facts.matched < settings.warm_up:
        return f"people agreed with {facts.matched} decisions so far, {settings.warm_up} are needed"
    return None


def _distrust(facts: RouteFacts, settings: RouteSettings) -> str | None:
    """What was taken back for this sender, by an earlier reply's bad end or by a person."""
    said = facts.distrust
    return f"trust in the sender: {said.text}" if isinstance(said, Unreadable) else said


def _threshold(facts: RouteFacts, settings: RouteSettings) -> str | None:
    quality, confidence = facts.draft.quality, facts.classification.confidence
    rule = settings.rule_for(facts.sender, facts.classification.main.category) if settings.autonomy else None
    if isinstance(facts.tightened, Unreadable):
        return f"the threshold of the category: {facts.tightened.text}"
    least = tightened(rule.threshold if rule is not None else settings.threshold, facts.tightened)
    if quality is None:
        return "the quality of the draft is unknown"
    if quality.score < least:
        return f"the draft's score {quality.score:.2f} is below {least:.2f}"
    if confidence < least:
        return f"the classification's confidence {confidence:.2f} is below {least:.2f}"
    return None


def _loop(facts: RouteFacts, settings: RouteSettings) -> str | None:
    if facts.mails_before >= settings.longest_thread:
        return f"the conversation holds {facts.mails_before} mails already; it may be one of machines"
    return None


def _message(facts: RouteFacts, settings: RouteSettings) -> str | None:
    if facts.draft.text is None:
        return facts.draft.reason or "there is no draft"
    return facts.draft.reason  # of a part that has none


def _spend(facts: RouteFacts, settings: RouteSettings) -> str | None:
    if isinstance(facts.spend_exhausted, Unreadable):
        return f"the spend budget: {facts.spend_exhausted.text}"
    return "the spend budget is used up" if facts.spend_exhausted else None


def _hours(facts: RouteFacts, settings: RouteSettings) -> str | None:
    return "it is outside working hours" if facts.in_working_hours is False else None


def _blocked(facts: RouteFacts, settings: RouteSettings) -> str | None:
    return "an open question was never answered" if facts.auto_send_blocked else None


def _grave(facts: RouteFacts, settings: RouteSettings) -> str | None:
    for intent in facts.classification.intents:
        if intent.category == "complaint" or intent.priority == "urgent":
            word = "a complaint" if intent.category == "complaint" else "urgent"
            return f"the message is {word}"
        if intent.category == "spam":  # a mail that is nothing else was archived
            return "a part of the message looks like spam"
    return None


def _guard(facts: RouteFacts, settings: RouteSettings) -> str | None:
    if facts.flags.guard_unavailable:
        return "the guard did not answer"
    if not facts.flags.guard_configured and not settings.without_guard:
        return "no guard is configured"
    return None


def _trust(facts: RouteFacts, settings: RouteSettings) -> str | None:
    if facts.released or facts.flags.released:
        return "a person released it from quarantine"
    if facts.message_id_reused:
        return "its Message-ID belongs to another message"
    if facts.flags.injection_detected:
        return "the scan found something that looks like an injection"
    suspicious = next((f for f in facts.flags.findings if f.kind == "sender"), None)
    if suspicious is not None:
        return f"the sender is doubtful ({suspicious.name})"
    return "the sender is not verified" if facts.flags.sender_verification == "unverified" else None


def _recipient(facts: RouteFacts, settings: RouteSettings) -> str | None:
    return None if "@" in facts.sender else "the sender's address cannot be told"


def _override(facts: RouteFacts, settings: RouteSettings) -> str | None:
    return "the draft holds an order to the machine" if has_override([facts.draft.text or ""]) else None


def _secret(facts: RouteFacts, settings: RouteSettings) -> str | None:
    written = f"{facts.draft.subject}\n{facts.draft.text or ''}"  # as the reference monitor looks at it
    return "the draft holds a secret" if holds_secret(written) else None


def _rules(facts: RouteFacts, settings: RouteSettings) -> str | None:
    return "a rule of the owner forbids it" if facts.classification.never_auto_send else None


def _plugin(facts: RouteFacts, settings: RouteSettings) -> str | None:
    said = facts.plugin_objection
    return f"a plugin: {said.text}" if isinstance(said, Unreadable) else said


GATES: tuple[tuple[str, Gate], ...] = (
    ("breaker", _breaker),
    ("message", _message),
    ("auto_reply", _auto_reply),
    ("threshold", _threshold),
    ("autonomy", _autonomy),
    ("sender_trust", _distrust),
    ("loop", _loop),
    ("spend_budget", _spend),
    ("working_hours", _hours),
    ("auto_send_blocked", _blocked),
    ("complaint_or_urgent", _grave),
    ("guard", _guard),
    ("trust", _trust),
    ("recipient", _recipient),
    ("override_phrase", _override),
    ("secret", _secret),
    ("owner_rules", _rules),
    ("plugin", _plugin),
    ("warm_up", _warm_up),
)
"""The gates in their order (spec, section 7.6)."""

"""The product under test: its agent, what its steps are given, how it takes a mail in."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from tests.conformance.pipeline.brakes import ScriptedBrakes
from tests.conformance.pipeline.client import Asked
from tests.conformance.pipeline.messages import Message

from waybook.agents.definition import AgentDefinition, define
from waybook.engine.aggregates.sender import Rate
from waybook.engine.ports import Clock
from waybook.inbox.agent import Inbox
from waybook.inbox.brakes import Brakes
from waybook.inbox.classify import HandlingRule
from waybook.inbox.events import MailReceived
from waybook.inbox.knowledge import Knowledge
from waybook.inbox.route import AutonomyRule, RouteSettings
from waybook.inbox.scan.scan import ScanSettings, read_mail
from waybook.inbox.settings import InboxSettings, Models
from waybook.inbox.starting import MailStart, mail_start

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World

CONFIG_READ: frozenset[str] = frozenset(
    {"agent", "auto_reply", "shadow", "threshold", "daily_cap", "own_hosts", "own_addresses", "tone", "rules"}
    | {"breaker", "spend_budget", "working_hours", "plugin_gate", "scorecard", "autonomy", "autonomy_rules"}
    | {
        "warm_up_matches",
        "auto_delay_seconds",
        "human_delay_seconds",
        "daily_count",
        "reset_passed",
        "reconcile_after_minutes",
        "rate_limit",
    }
)
"""Members of `given.config` that this build's product knows."""

DEFAULTS: dict[str, Any] = {
    "agent": True,
    "auto_reply": False,
    "shadow": True,
    "threshold": 0.8,
    "daily_cap": 100,
    "own_addresses": ["help@ours.example"],
    "own_hosts": ["ours.example"],
    "tone": "",
    "rules": [],
}
"""`conventions.defaults.config`."""

TENANT = "case"
MAILBOX = "inbox"


@cache
def definition() -> AgentDefinition:
    """The built-in agent `inbox`."""
    return define(Inbox)


def settings(config: Mapping[str, Any]) -> InboxSettings:
    """The owner's choices as a case gives them."""
    chosen = {**DEFAULTS, **config}
    scan = ScanSettings(own_hosts=frozenset(chosen["own_hosts"]), agent_enabled=chosen["agent"])
    route = RouteSettings(
        auto_reply=chosen["auto_reply"],
        shadow=chosen["shadow"] is not False,
        autonomy=chosen.get("autonomy", False),
        autonomy_rules=tuple(
            AutonomyRule(**{k: v for k, v in rule.items() if k != "daily_count"})
            for rule in chosen.get("autonomy_rules") or ()
        ),
        warm_up=chosen.get("warm_up_matches", 3),
        threshold=chosen["threshold"],
        daily_cap=chosen["daily_cap"],
    )
    if chosen["rules"] == "error":
        return InboxSettings(scan=scan, route=route, tone=chosen["tone"], rule_source=_NoRules())
    rules = msgspec.convert(chosen["rules"], tuple[HandlingRule, ...])
    return InboxSettings(scan=scan, route=route, tone=chosen["tone"], rules=rules)


class _NoRules:
    """A store of the owner's rules that is down."""

    async def rules(self) -> tuple[HandlingRule, ...]:
        """See RuleSource."""
        raise OSError("the rules cannot be read, as the case says")


def provides(world: "World") -> dict[type, Any]:
    """What steps ask for by type: scripted adapters of the product's ports."""
    return {
        Models: Models.all_by(world.models, guard=world.models),
        Knowledge: world.sources,
        Brakes: ScriptedBrakes(world.config),
        InboxSettings: world.settings,
        Clock: world.clock,
    }


def arrivals(config: Mapping[str, Any]) -> Rate | None:
    """How fast one sender's mails may begin on live channels."""
    given = config.get("rate_limit")
    return Rate(given["per_minute"], given["burst"]) if given else None


def take_in(world: "World", raw: bytes) -> MailStart:
    """The start of a mail, as the product's intake makes it on a live channel."""
    own = (world.case.given.get("config") or {}).get("own_addresses", DEFAULTS["own_addresses"])
    return mail_start(raw, tenant=TENANT, mailbox=MAILBOX, received_at=world.clock.now(), own_addresses=own, live=True)


def current_text(world: "World", message: Message) -> str:
    """The text of a mail as context_retrieval hands it to the builder, where nothing was extracted from it."""
    start = take_in(world, message.mail).payload
    assert start.body is not None
    mail = msgspec.json.decode(start.body, type=MailReceived).mail
    text = read_mail(mail).text
    return f"Subject: {mail.subject}\n\n{text}" if mail.subject else text


def configuration(world: "World") -> dict[str, Any]:
    """The configuration with which the case's runs start."""
    return {}


async def submit(world: "World", start: MailStart) -> Asked:
    """What intake does with a start: objects first, then the command."""
    for name, data in start.objects.items():
        await world.backend.ports.objects.put(name, data)
    payload = msgspec.structs.replace(start.payload, configuration=configuration(world))
    return await world.client.give(start.key, "start", payload)

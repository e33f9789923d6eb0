"""The owner's part of a case: the policy, and what was counted before the case began."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.conformance.pipeline import product

from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.keys import DAY_MS, budget_key, category_key, policy_key
from waybook.engine.aggregates.ledger import ledger_of
from waybook.engine.aggregates.requests import Asked, ChangePolicy, Learn, Reserve
from waybook.events import engine as e
from waybook.events.aggregate import Verdict
from waybook.inbox.settings import DAILY
from waybook.services.walker.lifecycle import Lifecycle

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World

POLICY = ("auto_delay_seconds", "human_delay_seconds")
"""Members of `given.config` that the product keeps in its policy."""


async def arrange(world: "World", given: Mapping[str, Any]) -> None:
    """Sets the policy that the case gives, before anything else happens."""
    config = given.get("config") or {}
    values = {name: config[name] for name in POLICY if config.get(name) is not None}
    lifecycle = Lifecycle(world.backend.ports.state, world.codec, world.clock, "arranged")
    if config.get("daily_count"):
        before = DAY_MS if config.get("reset_passed") else 0
        now = world.clock.now() - before
        charged = Reserve("before", "arranged", cap=10**6, expires=now + 3 * DAY_MS, amount=int(config["daily_count"]))
        await lifecycle.change(budget_key(product.TENANT, DAILY, now), None, (Asked(charged),), Grants())
    if (week := given.get("feedback_week")) is not None:
        category = world.settings.route.autonomy_rules[0].category
        approved: list[Verdict] = ["approved"] * week["approved"]
        refused: list[Verdict] = ["rejected"] * week["rejected"]
        verdicts = approved + refused
        now, every = world.clock.now(), 6 * DAY_MS // len(verdicts)
        told = [
            Asked(Learn(e.ReplyJudged(category=category, verdict=v, run=f"r{n}", at=now - 6 * DAY_MS + n * every)))
            for n, v in enumerate(verdicts)
        ]
        await lifecycle.change(category_key(product.TENANT, category), None, told, Grants())
    if values:
        await lifecycle.change(policy_key(product.TENANT), None, (Asked(ChangePolicy(values), by="owner"),), Grants())


async def daily_count(world: "World") -> int:
    """Automatic approvals of today, as the ledger has them."""
    return await count(world, DAILY)


async def count(world: "World", scope: str) -> int:
    """What a ledger counts today."""
    now = world.clock.now()
    key = budget_key(product.TENANT, scope, now)
    run = await Lifecycle(world.backend.ports.state, world.codec, world.clock, "reader").load(key)
    return ledger_of(run).taken(now)

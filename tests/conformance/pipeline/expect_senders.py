"""What must hold of senders and of what became of replies: rules that were taken back, who is told, feedback."""

from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.compare import Differences, differences
from tests.conformance.pipeline.expect import reads
from tests.conformance.pipeline.product import TENANT
from tests.conformance.pipeline.world import World

from waybook.engine.aggregates.keys import sender_key
from waybook.engine.aggregates.sender import Sender, sender_of
from waybook.inbox.breaker import BreakerSettings
from waybook.inbox.reply import author_of
from waybook.inbox.returned import FIELD, category_of
from waybook.inbox.route import tightened
from waybook.services.reading.log_brakes import LogBrakes
from waybook.services.reading.watched import Watched
from waybook.services.walker.lifecycle import Lifecycle


async def sender_called(world: World, address: str) -> Sender:
    """A sender as the log has them."""
    reader = Lifecycle(world.backend.ports.state, world.codec, world.clock, "reader")
    return sender_of(await reader.load(sender_key(TENANT, address)))


@reads("rule")
async def _rule(world: World, value: Any) -> Differences:
    """The autonomy rule for the message's category and sender, as it stands for the next decision."""
    if set(value) == {"threshold"}:
        rule = world.settings.route.autonomy_rules[0]
        looked = LogBrakes(
            Watched(world.backend.ports.state, world.clock), world.clock, TENANT, settings=BreakerSettings()
        )
        return differences(value, {"threshold": tightened(rule.threshold, await looked.tightened(rule.category))})
    if set(value) - {"category", "sender", "enabled"}:
        raise Unsupported("expect.rule: members beside the threshold are read with a message")
    run = (await world.history(world.message().key)).run
    if run is None:
        return ["the message has no history"]
    address, category = author_of(run), category_of(run)
    known = await sender_called(world, address)
    return differences(value, {"category": category, "sender": address, "enabled": category not in known.distrust})


@reads("notices")
async def _notices(world: World, value: Any) -> Differences:
    """Who is told: the owner sees it beside the message, among what is odd about it."""
    run = (await world.history(world.message().key)).run
    told = (
        run is not None and bool(run.fields.get(FIELD)) and any("reply" in r for r in run.fields.get("remarks") or ())
    )
    return differences(value, ["owner"] if told else [])

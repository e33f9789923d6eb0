"""Threads of a case, as the product keeps them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import mail, product

from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.keys import thread_key
from waybook.engine.aggregates.requests import Asked, SetThread
from waybook.engine.aggregates.thread import Thread
from waybook.events.subjects import RunKey
from waybook.inbox.intake.canonical import mail_run_id
from waybook.inbox.intake.mail import ParsedMail
from waybook.services.reading.aggregates import read_thread
from waybook.services.walker.lifecycle import Lifecycle

if TYPE_CHECKING:
    from tests.conformance.pipeline.world import World


def key_of(given: Mapping[str, Any]) -> RunKey:
    """Where the thread stands: it is named after its first mail, which may never have come."""
    first = ParsedMail(message_id=mail.thread_id(given["id"]))
    return thread_key(product.TENANT, mail_run_id(b"", first, tenant=product.TENANT, mailbox=product.MAILBOX))


async def arrange(world: "World", given: Mapping[str, Any]) -> None:
    """The thread with its status, set by a person. Unsupported for what else a case may say of it."""
    unread = set(given) - {"id", "status"}
    if unread:
        raise Unsupported(f"given.thread.{', '.join(sorted(unread))}: not arranged yet")
    if given.get("status", "open") != "open":
        lifecycle = Lifecycle(world.backend.ports.state, world.codec, world.clock, "arranged")
        request = Asked(SetThread(given["status"]), by="u1")
        await lifecycle.change(key_of(given), None, (request,), Grants())


async def read(world: "World", given: Mapping[str, Any]) -> Thread:
    """The thread as it stands."""
    return await read_thread(world.backend.ports.state, product.TENANT, key_of(given).run)

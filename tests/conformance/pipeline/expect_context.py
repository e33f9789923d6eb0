"""What must hold of the assembled context, and of the texts kept for people."""

from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.compare import Differences, differences
from tests.conformance.pipeline.expect import reads
from tests.conformance.pipeline.mail import text_of
from tests.conformance.pipeline.names import to_case
from tests.conformance.pipeline.world import World

from waybook.inbox.context import Context
from waybook.inbox.events import ContextRetrieved, MailReceived


async def _context(world: World) -> Context:
    """The context that the case's context_retrieval assembled last."""
    history = await world.history(world.message().key)
    for published in reversed(history.run.log if history.run is not None else []):
        if published.event == ContextRetrieved.__name__:
            event = world.definition.decode(published.event, published.schema, published.payload)
            assert isinstance(event, ContextRetrieved)
            return event.context
    raise Unsupported("no context was assembled in the case")


@reads("context_must_contain")
async def _must_contain(world: World, value: Any) -> Differences:
    text = (await _context(world)).text
    return [f"{part!r} is not in the context" for part in value if part not in text]


@reads("context_must_not_contain")
async def _must_not_contain(world: World, value: Any) -> Differences:
    text = (await _context(world)).text
    return [f"{part!r} is in the context" for part in value if part in text]


@reads("context_max_chars")
async def _max_chars(world: World, value: Any) -> Differences:
    length = len((await _context(world)).text)
    return [] if length <= value else [f"{length} characters, at most {value} expected"]


@reads("current_message_min_chars")
async def _current_message_min_chars(world: World, value: Any) -> Differences:
    context = await _context(world)
    length = len(context.text) - context.message_start
    return [] if length >= value else [f"{length} characters of the current message, at least {value} expected"]


@reads("tier")
async def _tier(world: World, value: Any) -> Differences:
    return differences(value, (await _context(world)).tier)


@reads("coverage")
async def _coverage(world: World, value: Any) -> Differences:
    return differences(value, to_case((await _context(world)).coverage))


@reads("groundingSources")
async def _grounding_sources(world: World, value: Any) -> Differences:
    return differences(value, list((await _context(world)).grounding_sources))


@reads("text_for_human_unchanged")
async def _text_for_human_unchanged(world: World, value: Any) -> Differences:
    """Text and HTML kept for people equal those of the mail."""
    message = world.message()
    history = await world.history(message.key)
    started = next(p for p in (history.run.log if history.run is not None else []) if p.event == MailReceived.__name__)
    event = world.definition.decode(started.event, started.schema, started.payload)
    assert isinstance(event, MailReceived)
    kept = {"text": _lines(event.mail.text), "html": _lines(event.mail.html)}
    sent = {"text": _lines(text_of(message.given)), "html": _lines(message.given.get("html"))}
    return differences(value, kept == sent)


def _lines(text: str | None) -> str:
    """Line ends are the transport's, and so is one at the end of a part."""
    return "\n".join((text or "").splitlines())

"""Other values in place of those that a step would be given (`run_step`: `input`), and a step's input read back."""

import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.messages import CLASSIFICATION
from tests.conformance.pipeline.names import to_product

from waybook.events.typed import Event
from waybook.inbox import events as ev
from waybook.inbox.classify import Classification, Intent
from waybook.inbox.draft import Quality

Change = Callable[[Event, Any], Event | None]


def override(arguments: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the given values in their events; Unsupported when none has a place for one.

    Values are put in unchecked, as text that a model made up may be.
    """
    changed = dict(arguments)
    for key, value in given.items():
        change = CHANGES.get(key)
        hits = {n: new for n, e in changed.items() if change and isinstance(e, Event) and (new := change(e, value))}
        if not hits:
            raise Unsupported(f"`run_step`: no input of the step has a place for `{key}`")
        changed.update(hits)
    return changed


def _classification(event: Event, value: Any) -> Event | None:
    if not isinstance(event, ev.MailClassified | ev.DraftProposed):
        return None
    intents = value.get("intents", [value])
    found = Classification(intents=tuple(unchecked(Intent, {**CLASSIFICATION, **i}) for i in intents))
    return msgspec.structs.replace(event, classification=found)


def _quality(event: Event, value: Any) -> Event | None:
    if not isinstance(event, ev.DraftProposed):
        return None
    quality = unchecked(Quality, value) if value is not None else None
    return msgspec.structs.replace(event, draft=msgspec.structs.replace(event.draft, quality=quality))


def _context(event: Event, value: Any) -> Event | None:
    if not isinstance(event, ev.ContextRetrieved):
        return None
    return msgspec.structs.replace(event, context=msgspec.structs.replace(event.context, text=value))


CHANGES: dict[str, Change] = {"classification": _classification, "draftQuality": _quality, "context": _context}
"""Names that cases give to a step's input, and the events that hold it."""


def unchecked(cls: type[msgspec.Struct], value: Mapping[str, Any]) -> Any:
    """`value` in the shape of the struct, its own values as they are."""
    hints = typing.get_type_hints(cls)
    members = {k: v for k, v in to_product(value).items() if k in hints}
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in members.items()})


def as_input(event: Event) -> dict[str, Any]:
    """The parts of a step's input that this event brings, by the names that cases give them (the product's below)."""
    if isinstance(event, ev.DraftProposed):
        quality = msgspec.to_builtins(event.draft.quality)
        return {
            "draftQuality": quality,
            "draftResponse": event.draft.text,
            "classification": msgspec.to_builtins(event.classification.main),
        }
    if isinstance(event, ev.MailClassified):
        return {"classification": msgspec.to_builtins(event.classification.main)}
    if isinstance(event, ev.ContextRetrieved):
        return {"context": event.context.text}
    return {}

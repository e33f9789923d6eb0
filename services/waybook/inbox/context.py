"""The work of context_retrieval: what the drafter is given beside the mail, within a budget of tokens."""

import asyncio
from collections.abc import Sequence
from typing import Literal

import msgspec

from waybook.agents.model import Model, ModelRateLimited, ModelRequest, Section
from waybook.events.engine import TokenUsage
from waybook.events.errors import WaybookError
from waybook.inbox.knowledge import Contact, Knowledge, Passage, Query, ThreadMessage

BUDGET = 4000
"""Tokens of a normal context; three times as many are compacted, more is an emergency."""
CHARS_PER_TOKEN = 4
MAX_MESSAGE = 24_000
MAX_QUERY = 2000
EMERGENCY_MESSAGE = 4000
EMERGENCY_ENTRY = 240

Tier = Literal["normal", "compacted", "emergency"]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `low_coverage`: neither knowledge nor files nor a thread."""

    contact: bool = False
    thread: bool = False
    knowledge: bool = False
    files: bool = False
    knowledge_hit_count: int = 0
    top_score: float | None = None
    low_coverage: bool = True


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The assembled context. `grounding_sources` lists only passages whose text stands in it whole.

    `message_start` is where the current message begins in `text`; `passage` is the best hit, for models that quote.
    """

    text: str
    tier: Tier
    tokens: int
    coverage: Coverage
    grounding_sources: tuple[str, ...] = ()
    message_start: int = 0
    passage: str = ""
    contact: str | None = None
    searches: tuple[str, ...] = ()
    model: str | None = None
    usage: TokenUsage | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the sources answered."""

    contact: Contact | None = None
    activities: Sequence[str] = ()
    commitments: Sequence[str] = ()
    facts: Sequence[str] = ()
    thread: Sequence[ThreadMessage] = ()
    passages: Sequence[Passage] = ()
    files: Sequence[Passage] = ()
    searches: tuple[str, ...] = ()


def count_tokens(text: str) -> int:
    """The length of a text in tokens, at four characters a token."""
    return -(-len(text) // CHARS_PER_TOKEN)


async def look_up(
    knowledge: Knowledge, *, sender: str, subject: str, text: str, thread: str | None, run: str, verified: bool = True
) -> Found:
    """Asks the sources. Texts of ten characters and less are not searched for. Raises PortError.

    A sender who is not `verified` is nobody's contact: a forged From must not bring up a customer's data. The sources
    are not told such a sender's address.
    """
    sender = sender if verified else ""
    contact = await knowledge.contact(sender) if sender else None
    asked = f"{subject}\n{text}"[:MAX_QUERY]
    query = Query(text=asked, contact=contact, sender=sender, thread=thread, run=run)
    searches = len(f"{subject}{text}".strip()) > 10
    activities, commitments, facts, messages = await asyncio.gather(
        knowledge.activities(query, 5),
        knowledge.commitments(query, 20),
        knowledge.facts(query, 20),
        knowledge.thread(query, 5),
    )
    passages: Sequence[Passage] = ()
    files: Sequence[Passage] = ()
    if searches:
        passages, files = await asyncio.gather(knowledge.passages(query, 10), knowledge.files(query, 3))
    return Found(
        contact=contact,
        activities=activities,
        commitments=commitments,
        facts=facts,
        thread=messages,
        passages=passages,
        files=files,
        searches=("knowledge", "files") if searches else (),
    )


def assemble(found: Found, message: str) -> Context:
    """The context from what was found and the current message, which stands last; cut to its tier."""
    head, entries = _head(found), _entries(found)
    current = f"Current message:\n{message[:MAX_MESSAGE]}"
    pieces = [*head, *(text for _, text in entries)]
    text = "\n\n".join([*pieces, current])
    tokens = count_tokens(text)
    best = next(iter(found.passages), None)
    full = Context(
        text=text,
        tier="normal",
        tokens=tokens,
        coverage=_coverage(found),
        grounding_sources=tuple(p.id for p, _ in entries),
        message_start=len(text) - len(current),
        passage=best.text if best else "",
        contact=found.contact.id if found.contact else None,
        searches=found.searches,
    )
    return full if tokens <= BUDGET else _shortened(full, found, message, entries, len(current))


def _shortened(
    full: Context, found: Found, message: str, entries: Sequence[tuple[Passage, str]], current: int
) -> Context:
    """`full` within the budget: its tail, or the bare necessities where it is far too long."""
    if full.tokens <= 3 * BUDGET:
        kept = full.text[-BUDGET * CHARS_PER_TOKEN :]
        sources = tuple(p.id for p, entry in entries if entry in kept)
        start = max(0, len(kept) - current)
        return msgspec.structs.replace(
            full, text=kept, tier="compacted", grounding_sources=sources, message_start=start
        )
    short = _emergency(found, message)
    start = short.rindex("Current message:\n" + message[:100])
    return msgspec.structs.replace(full, text=short, tier="emergency", grounding_sources=(), message_start=start)


def _head(found: Found) -> list[str]:
    parts = [f"Contact: {found.contact}"] if found.contact else []
    parts.extend(_listed("Recent activity", found.activities))
    parts.extend(_listed("Open commitments", found.commitments))
    parts.extend(_listed("Known facts", found.facts))
    for item in found.thread:
        who = "we" if item.ours else item.author or "they"
        parts.append(f"Earlier in this thread ({who}): {item.text}")
    return parts


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:\n" + "\n".join(f"- {line}" for line in lines)] if lines else []


def _entries(found: Found) -> list[tuple[Passage, str]]:
    hits = [(p, f"Knowledge [{p.id}]{' (superseded)' if p.superseded else ''}: {p.text}") for p in found.passages]
    return [*hits, *((p, f"File [{p.id}]: {p.text}") for p in found.files)]


def _emergency(found: Found, message: str) -> str:
    parts = [f"Contact: {found.contact}"] if found.contact else []
    parts.extend(_listed("Open commitments", [line[:EMERGENCY_ENTRY] for line in found.commitments[:3]]))
    parts.extend(_listed("Known facts", [line[:EMERGENCY_ENTRY] for line in found.facts[:3]]))
    parts.extend(_listed("Recent activity", [line[:EMERGENCY_ENTRY] for line in found.activities]))
    used = sum(len(part) + 2 for part in parts)
    room = max(EMERGENCY_MESSAGE, BUDGET * CHARS_PER_TOKEN - used - 20)
    return "\n\n".join([*parts, f"Current message:\n{message[:room]}"])


def _coverage(found: Found) -> Coverage:
    scores = [p.score for p in found.passages if p.score]
    return Coverage(
        contact=found.contact is not None,
        thread=bool(found.thread),
        knowledge=bool(found.passages),
        files=bool(found.files),
        knowledge_hit_count=len(found.passages),
        top_score=max(scores) if scores else None,
        low_coverage=not (found.passages or found.files or found.thread),
    )


class _Extracted(msgspec.Struct, frozen=True):
    facts: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


EXTRACTION_SCHEMA = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": {"type": "string"}, "maxItems": 30},
        "questions": {"type": "array", "items": {"type": "string"}, "maxItems": 30},
    },
    "required": ["facts", "questions"],
}


async def extract(model: Model, message: str) -> tuple[str, str | None, TokenUsage | None]:
    """The message as facts and questions, with the model's name and usage; the message itself where that fails.

    Raises ModelRateLimited only.
    """
    request = ModelRequest(
        role="extraction",
        instructions="List the facts and the questions of this mail, each in one sentence of its own words.",
        sections=(Section("message", message[:MAX_MESSAGE]),),
        schema=EXTRACTION_SCHEMA,
    )
    try:
        answer = await model.ask(request)
        found = msgspec.convert(answer.data, _Extracted)
    except ModelRateLimited:
        raise
    except (WaybookError, msgspec.ValidationError, OSError, TimeoutError):
        return message, None, None
    lines = [*_listed("Facts", found.facts[:30]), *_listed("Questions", found.questions[:30])]
    return "\n\n".join([*lines, message]) if lines else message, answer.model, answer.usage


async def context_retrieval(
    knowledge: Knowledge,
    *,
    sender: str,
    subject: str,
    text: str,
    thread: str | None,
    run: str,
    extraction: Model | None = None,
    verified: bool = True,
) -> Context:
    """Assembles the context of a mail. `text` is what a reader sees of it (of a reply: its new text first).

    Raises PortError when a source is away, ModelRateLimited.
    """
    found = await look_up(
        knowledge, sender=sender, subject=subject, text=text, thread=thread, run=run, verified=verified
    )
    message, model, usage = (text, None, None) if extraction is None else await extract(extraction, text)
    lines = f"Subject: {subject}\n\n{message}" if subject else message
    return msgspec.structs.replace(assemble(found, lines), model=model, usage=usage)

"""The work of compose: one reply out of the drafts that were written for a mail's intents."""

from collections.abc import Sequence

import msgspec

from waybook.inbox.draft import Draft, Quality


def compose(drafts: Sequence[Draft]) -> Draft:
    """One reply out of the drafts of several intents, in their order: their texts, and the worst quality of all.

    A draft without a text leaves its reason: what answers one part only is not the whole reply. A quality that is
    unknown for one of them is unknown for all.
    """
    first = drafts[0]
    if len(drafts) == 1:
        return first
    texts = [d.text for d in drafts if d.text]
    unanswered = next((d.reason or NOT_ALL for d in drafts if not d.text), None)
    return msgspec.structs.replace(
        first,
        text=merge_texts(texts) if texts else None,
        quality=worst([d.quality for d in drafts]),
        options=None,
        reason=unanswered,
        model=None,  # each draft's own attempt says which model wrote it, and what it counted
        usage=None,
    )


NOT_ALL = "a part of the message has no draft"


def worst(qualities: Sequence[Quality | None]) -> Quality | None:
    """The quality of the whole: its weakest part's score, complete and grounded only if all parts are."""
    known = [q for q in qualities if q is not None]
    if len(known) < len(qualities):
        return None
    return Quality(
        score=min(q.score for q in known),
        complete=all(q.complete for q in known),
        grounded=all(q.grounded for q in known),
        flags=tuple(dict.fromkeys(f for q in known for f in q.flags)),
    )


def merge_texts(texts: Sequence[str]) -> str:
    """Several replies as one: a greeting and a closing that all of them share stand once."""
    blocks = [text.split("\n\n") for text in texts]
    if len({b[0] for b in blocks}) == 1 and min(map(len, blocks)) > 2:
        greeting, blocks = blocks[0][:1], [b[1:] for b in blocks]
    else:
        greeting = []
    closing: list[str] = []
    while min(map(len, blocks)) > 1 and len({b[-1] for b in blocks}) == 1:
        closing.insert(0, blocks[0][-1])
        blocks = [b[:-1] for b in blocks]
    middle = list(dict.fromkeys(part for b in blocks for part in b))
    return "\n\n".join([*greeting, *middle, *closing])

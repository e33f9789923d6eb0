"""What of a mail's log holds personal data: what a codec with a cipher stores sealed (DESIGN 7)."""

from waybook.events.registry import Registry
from waybook.inbox import events

FIELDS = (
    "answer_to", "remarks", "classification", "security_flags", "grounding_sources", "draft_response", "draft_subject",
    "draft_options", "draft_html", "draft_revisions", "draft_proposal", "pending_clarification", "answers",
    "error_message", "returned", "reservations", "to", "cc", "bcc", "subject", "text", "html", "reply_to",
    "in_reply_to", "references",
)  # fmt: skip
"""Fields of runs, and parameters of sends: addresses, and words that people wrote or are written to."""


def registry() -> Registry:
    """The events of `inbox`, with their personal fields and those of its runs marked."""
    known = Registry.of_module(events)
    known.mark_personal(*FIELDS)
    return known

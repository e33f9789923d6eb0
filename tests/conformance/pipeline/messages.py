"""The messages of a case: their names in the case, their runs, and how they were arranged."""

from collections.abc import Mapping
from typing import Any

import msgspec

from waybook.events.subjects import RunKey

DEFAULTS: dict[str, Any] = {
    "sender": "Ann <ann@x.example>",
    "subject": "Question",
    "text": "Where is my order 4711?",
    "html": None,
    "thread": None,
    "contact": "Ann",
    "draftResponse": None,
}
"""`conventions.defaults.message`."""

CLASSIFICATION: dict[str, Any] = {
    "category": "support",
    "priority": "normal",
    "sentiment": "neutral",
    "intent": "question",
    "confidence": 0.9,
}

QUALITY: dict[str, Any] = {"score": 0.9, "complete": True, "grounded": True, "flags": []}

DRAFT: dict[str, Any] = {"text": "A plain answer.", "quality": QUALITY}
"""`conventions.defaults.step_results`."""

MAIL = frozenset(
    {"id", "sender", "subject", "text", "html", "thread", "contact", "messageId", "references", "reply_to", "headers"}
    | {"text_length", "attack", "attack_at", "channel", "to", "received_at"}
)
"""Members of a given message that describe the mail, not the run's fields."""

PLACE = frozenset(
    {"state", "age_seconds", "started", "approved_minutes_ago", "walk", "hold", "pendingAutoSend", "operations"}
)
"""Members that say where the run stands."""


class Message(msgspec.Struct, eq=False):
    """A message of a case. `stored`: its run has a history. `hand_over`: its next step is due and nobody asked yet.

    `arranged` is the version of the run at which its arranged history ends; `rows` maps ids of given action rows to
    actions, `given_as` to the status they were given with.
    """

    id: str
    key: RunKey
    given: Mapping[str, Any]
    mail: bytes
    state: str = "received"
    stored: bool = False
    hand_over: bool = False
    arranged: int = 0
    rows: dict[str, str] = {}
    given_as: dict[str, str] = {}
    kept: dict[str, Any] = {}

    def given_fields(self) -> dict[str, Any]:
        """The run's fields as given, in the names of the case."""
        return {k: v for k, v in self.given.items() if k not in MAIL and k not in PLACE}


def with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """A given message with the defaults for what is not named."""
    return {**DEFAULTS, **given}

"""The cases' names and the product's: the one place that says how they go together."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

STEPS = ("security_scan", "context_retrieval", "classify", "draft", "route")
"""The five kinds of steps, in order."""

STATE_OF_STEP = {
    "security_scan": "security_check",
    "context_retrieval": "classifying",
    "classify": "classifying",
    "draft": "drafting",
    "route": "drafting",
}

START_ROW = "E1"
RESET_STATE = "received"

PROCESSED = frozenset({"approved", "sent", "rejected", "archived", "failed"})
"""Entering one of these sets `processedAt` (pipeline-spec 2)."""

FIELD_NAMES = {"state": "status", "kind": "step"}
"""Names that are not the snake-case form of the case's name."""

_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")
_LOWER = re.compile(r"_([a-z0-9])")


def snake(name: str) -> str:
    """`draftResponse` -> `draft_response`."""
    return FIELD_NAMES.get(name) or _UPPER.sub(lambda m: "_" + m[1].lower(), name)


def camel(name: str) -> str:
    """`draft_response` -> `draftResponse`."""
    return _LOWER.sub(lambda m: m[1].upper(), name)


def to_product(value: Any) -> Any:
    """A value of a case with the members' names of the product, all the way down."""
    if isinstance(value, Mapping):
        return {snake(k): to_product(v) for k, v in value.items()}
    if isinstance(value, list):
        return [to_product(v) for v in value]
    return value


def to_case(value: Any) -> Any:
    """A value of the product (builtins or structs) with the members' names of the cases, all the way down."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        return {camel(k): to_case(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_case(v) for v in value]
    return value

"""Small definitions on which the engine's rules are shown. Typed events are plain dicts here."""

from typing import Any

import msgspec

from waybook.engine.definition import (
    Definition,
    EventKind,
    Parameter,
    ParameterKind,
    RetryPolicy,
    Row,
    Step,
    Table,
    default_table,
)

PIPELINE_STATES = frozenset({
    "received", "security_check", "quarantined", "classifying", "awaiting_clarification", "drafting",
    "draft_ready", "approved", "sent", "rejected", "archived", "failed",
})  # fmt: skip


def decode(event: str, schema: int, payload: msgspec.Raw) -> Any:
    return msgspec.json.decode(payload)


def takes(types: str, kind: ParameterKind = "required", size: int | None = None) -> Parameter:
    """A parameter named after its first type; `types` are joined by `|`."""
    names = tuple(types.split("|"))
    return Parameter(names[0].lower(), names, kind, size)


def step(name: str, *parameters: Parameter, gives: str = "", **options: Any) -> Step:
    outputs = frozenset(g for g in gives.split("|") if g)
    return Step(name, parameters, outputs, **options)


def build(agent: str, steps: tuple[Step, ...], kinds: dict[str, EventKind], table: Table | None = None) -> Definition:
    named = {t for s in steps for t in s.inputs | s.outputs}
    plain: dict[str, EventKind] = dict.fromkeys(sorted(named), "plain")
    return Definition.build(
        agent=agent, hash="d1", steps=steps, table=table or default_table(), kinds={**plain, **kinds}, decode=decode
    )


CHAIN = build(
    "chain",
    (
        step("one", takes("Go"), gives="A"),
        step("two", takes("A"), gives="B"),
        step("three", takes("B"), gives="Done"),
    ),
    {"Go": "start", "Done": "stop"},
)
"""Three steps, one after the other."""

FORK = build(
    "fork",
    (
        step("left", takes("Go"), gives="L"),
        step("right", takes("Go"), gives="R"),
        step("join", takes("L"), takes("R"), takes("Answer"), gives="Done"),
    ),
    {"Go": "start", "Done": "stop", "Answer": "external"},
)
"""Two steps side by side, joined with an answer from outside."""

WIDE = build(
    "wide",
    (
        step("split", takes("Go"), gives="A|B"),
        step("either", takes("A|B"), gives="C"),
        step("noted", takes("A"), takes("Note", "optional"), gives="D"),
        step("gather", takes("C|D", "list"), gives="E"),
        step("pair", takes("B", "fixed_list", 2), takes("Note", "optional"), gives="E"),
        step("limited", takes("E"), gives="F", max_executions=2),
        step("careless", takes("Note"), gives="F", stop_on_error=False),
        step("once", takes("D"), takes("F"), gives="Done", retry=RetryPolicy(max_failures=1)),
    ),
    {"Go": "start", "Done": "stop", "Note": "external"},
)
"""Every kind of parameter, a limit of executions, a step whose failure does not stop the run, one without retry."""


def _is_automated(run: Any, event: Any, world: Any) -> bool:
    return bool(event.get("automated"))


def _may_approve(run: Any, event: Any, world: Any) -> bool:
    return not world.facts.get("kill_switch", False)


def _flags(run: Any, event: Any) -> dict[str, Any]:
    return {"flags": event}


def _failed(run: Any, event: Any) -> dict[str, Any]:
    return {"error_message": event.error.text}


def _retried(run: Any, event: Any) -> dict[str, Any]:
    return {"error_message": None}


def _reason(run: Any, event: Any) -> str | None:
    return str(event.get("reason", "blocked"))


PIPELINE_TABLE = Table(
    initial="received",
    states=PIPELINE_STATES,
    terminal=frozenset({"sent", "rejected", "archived"}),
    rows=(
        Row("E2", "received", "Mail", "archived", guard=_is_automated),
        Row("E1", "received", "Mail", "security_check"),
        Row("E3", "security_check", "Clean", "classifying", fields=_flags),
        Row("E4", "security_check", "Threat", "quarantined", fields=_flags),
        Row("E5", "security_check", "Spam", "archived"),
        Row("E6", "quarantined", "Released", "received", restart=True),
        Row("E7", "quarantined", "Blocked", "archived", reason=_reason),
        Row("E8", "classifying", "Classified", "drafting", fields=_flags),
        Row("E9", "classifying", "", "draft_ready"),
        Row("E10", "classifying", "Unclear", "awaiting_clarification"),
        Row("E11", "classifying", "Spam", "archived"),
        Row("E12", "awaiting_clarification", "Answered", "drafting"),
        Row("E13", "awaiting_clarification", "", "archived"),
        Row("drafted", "drafting", "Draft", fields=_flags),
        Row("E15", "drafting", "Auto", "approved", guard=_may_approve),
        Row("E14", "drafting", "Review", "draft_ready"),
        Row("E14b", "drafting", "Auto", "draft_ready"),
        Row("E16", "draft_ready", "Approved", "approved"),
        Row("E17", "draft_ready", "Rejected", "rejected"),
        Row("E19", "approved", "Sent", "sent"),
        Row("E20", "approved", "Recalled", "draft_ready"),
        Row("FS", "approved", "Bounced", "failed"),
        Row("E24", "failed", "Approved", "approved"),
        Row("E21", "failed", "RetryRequested", "received", fields=_retried),
        Row("F", "*", "StepFailed", "failed", fields=_failed),
        Row("A", "*", "Blocked", "archived", reason=_reason),
        Row("marked", "*", "Marked", fields=_flags),
    ),
    waits={"quarantined": "release", "draft_ready": "approval", "awaiting_clarification": "answer"},
)

PIPELINE = build(
    "pipeline",
    (
        step("scan", takes("Mail"), gives="Clean|Threat|Spam"),
        step("context", takes("Clean"), gives="Context"),
        step("classify", takes("Context"), gives="Classified|Unclear|Spam"),
        step("draft", takes("Context"), takes("Classified|Answered"), gives="Draft"),
        step("route", takes("Draft"), gives="Review|Auto"),
        step("send", takes("Auto|Approved"), gives="Sent|Bounced"),
        step("mirror", takes("Draft"), takes("Marked", "optional")),
    ),
    {
        "Mail": "start", "Released": "external", "Blocked": "external", "Answered": "external",
        "Approved": "external", "Rejected": "external", "Recalled": "external", "Marked": "external",
    },
    PIPELINE_TABLE,
)  # fmt: skip
"""The 12-state graph of the message pipeline, with star rows, guards and a side branch."""

ALL = {d.agent: d for d in (CHAIN, FORK, WIDE, PIPELINE)}

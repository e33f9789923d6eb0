"""Checks of how events flow through an agent: what is produced, what can be reached, where it begins and ends."""

from collections.abc import Iterator

from waybook.agents.delegation import AgentFailure, AgentRequest, AgentResponse
from waybook.agents.findings import Finding
from waybook.agents.reading import Sheet, StepBody
from waybook.engine.definition import Parameter
from waybook.events.typed import (
    DisplayEvent,
    ExceptionEvent,
    ExternalEvent,
    RequestEvent,
    StartEvent,
    StopEvent,
    Unanswered,
)


def flow_findings(sheet: Sheet) -> Iterator[Finding]:
    """Findings on the agent as a graph."""
    entries = _entries(sheet)
    yield from _ends(sheet)
    if any(_is_unread(f) for body in sheet.bodies for f in body.signature.findings):
        return
    produced = entries | {name for body in sheet.bodies for name in body.signature.outputs}
    waiting: list[StepBody] = []
    for body in sheet.bodies:
        lacking = [p for p in _needed(sheet, body) if not produced & set(p.types)]
        for parameter in lacking:
            types = "|".join(parameter.types)
            text = (
                f"`{body.name}` waits for `{parameter.name}: {types}`, but no step returns {types} and it is neither a start "
                "event nor an answer from outside. Return it from a step, or derive it from ExternalEvent."
            )
            yield body.place.finding("INPUT_NEVER_PRODUCED", text, parameter.name)
        if not lacking and _is_never_asked(sheet, body, produced):
            types = " or ".join("|".join(p.types) for p in body.signature.parameters)
            text = (
                f"`{body.name}` runs when {types} comes, but no step returns it and it is neither a start event nor an answer "
                "from outside. Return it from a step, or derive it from ExternalEvent."
            )
            yield body.place.finding("INPUT_NEVER_PRODUCED", text, body.signature.parameters[0].name)
        waiting.append(body)
    missing = {t for body in sheet.bodies for p in body.signature.parameters for t in p.types} - produced
    yield from _unreachable(sheet, waiting, entries | missing)


def _is_unread(finding: Finding) -> bool:
    """Whether it is not known what a step returns: that may be the very thing which another waits for."""
    return finding.code in ("UNRESOLVABLE_PARAMETER", "INVALID_OUTPUT") and finding.parameter is None


def _entries(sheet: Sheet) -> set[str]:
    """Types that need no producing step: start events, what may come from outside, answers of other agents."""
    found = {c.__name__ for c in sheet.classes if issubclass(c, StartEvent | ExternalEvent)}
    if any(issubclass(c, AgentRequest) for c in sheet.classes):
        found |= {AgentResponse.__name__, AgentFailure.__name__}
    if any(issubclass(c, RequestEvent) and c.WITHIN_S is not None for c in sheet.classes):
        found.add(Unanswered.__name__)
    return found


def _needed(sheet: Sheet, body: StepBody) -> list[Parameter]:
    """Parameters without which a step cannot run; those that can never be filled have findings of their own."""
    never = _never(sheet)
    return [p for p in body.signature.parameters if not p.is_optional and not never & set(p.types)]


def _never(sheet: Sheet) -> set[str]:
    """Events that no step is ever offered."""
    return {c.__name__ for c in sheet.classes if issubclass(c, StopEvent | ExceptionEvent | DisplayEvent)}


def _is_never_asked(sheet: Sheet, body: StepBody, produced: set[str]) -> bool:
    """Whether a step takes nothing but optional events, and none of them ever comes."""
    parameters = body.signature.parameters
    optional = bool(parameters) and all(p.is_optional for p in parameters)
    return optional and not any(set(p.types) & (produced | _never(sheet)) for p in parameters)


def _unreachable(sheet: Sheet, bodies: list[StepBody], reached: set[str]) -> Iterator[Finding]:
    """Steps that nothing leads to although all that they wait for is returned by some step."""
    left = list(bodies)
    while True:
        ready = [b for b in left if all(reached & set(p.types) for p in _needed(sheet, b))]
        if not ready:
            break
        left = [b for b in left if b not in ready]
        reached = reached | {name for body in ready for name in body.signature.outputs}
    names = " and ".join(f"`{body.name}`" for body in left)
    for body in left:
        lacking = next(p for p in _needed(sheet, body) if not reached & set(p.types))
        only = (
            f"{names} only feed each other; nothing leads into the circle"
            if len(left) > 1
            else f"{names} only feeds itself"
        )
        types = "|".join(lacking.types)
        text = f"`{body.name}` takes `{lacking.name}: {types}`, but {only}. Let a step that is reached return {types}."
        yield body.place.finding("STEP_UNREACHABLE", text, lacking.name)


def _ends(sheet: Sheet) -> Iterator[Finding]:
    """Not asked while a signature cannot be read: what it takes and returns may be the very thing."""
    name = sheet.agent.__name__
    if any(f.code == "UNRESOLVABLE_PARAMETER" for b in sheet.bodies for f in b.signature.findings):
        return
    taken = {t for b in sheet.bodies for p in b.signature.parameters for t in p.types}
    returned = {t for b in sheet.bodies for t in b.signature.outputs}
    if not any(issubclass(c, StartEvent) for c in sheet.classes if c.__name__ in taken):
        text = f"no step of {name} takes a start event, so no run can begin; let one take a subclass of StartEvent"
        yield sheet.place.finding("NO_START", text)
    table = sheet.agent.table
    ends_otherwise = any(
        row.next in table.terminal and row.on not in ("StopEvent", "CancelRequested") for row in table.rows
    )
    stops = [c for c in sheet.classes if c.__name__ in returned and issubclass(c, StopEvent)]
    if not stops and not ends_otherwise:
        text = f"no step of {name} returns a stop event, so a run cannot end; return a subclass of StopEvent at the end"
        yield sheet.place.finding("NO_STOP", text)

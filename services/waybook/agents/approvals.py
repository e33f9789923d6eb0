"""What a step asks people to approve.

    @step
    async def report(self, asked: Asked, approvals: Approvals) -> ReportReady:
        ...
        approvals.request("mail", resource="mailto:board@example.org", params=mail, answer=Released, within_s=3 * 24 * 3600)
        return ReportReady(...)

    @step
    async def send(self, released: Released, report: ReportReady) -> Done: ...

The request is stored in the same commit as the step's result, and nothing of the process waits for the decision: the
run parks, and whatever process takes the decision up goes on with the step that takes `answer`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from waybook.agents.context import StepContext
from waybook.agents.errors import DefinitionError
from waybook.engine.contract import Contract
from waybook.engine.digest import canonical_digest
from waybook.events.typed import Decided, DecisionEvent

DECISIONS = ("approved", "rejected", "expired")


class Approvals:
    """Injected into a step that asks for it. An attempt that fails asks for nothing."""

    def __init__(self, context: StepContext, kinds: Mapping[str, str]) -> None:
        self._context = context
        self._kinds = kinds

    def request(
        self,
        action: str,
        *,
        resource: str,
        params: Any,
        answer: type[DecisionEvent] | Mapping[str, type[DecisionEvent]] = Decided,
        scope: str = "",
        deciders: Sequence[str] = (),
        within_s: float | None = None,
        summary: str | None = None,
    ) -> str:
        """Asks people to approve `action` on `resource` with exactly these parameters; returns their digest.

        `action` is the name of the side effect that is to use it.

        `params` is anything that becomes JSON, or the bytes that will leave. `answer` is the event that tells the run
        of the decision: one type for all of them, or by decision (approved, rejected, expired). `deciders` are the
        people who may decide; none: whoever holds the grant `decide` or `decide:<action>`. `within_s`: how long it may
        be decided and used, None: as long as it takes. `summary` is what people read. An earlier request of the run
        for the same action and resource that was not used is revoked, unless it is about the same.

        Raises DefinitionError for an answer that no step takes and `accepts` does not list.
        """
        answers = dict(answer) if isinstance(answer, Mapping) else dict.fromkeys(DECISIONS, answer)
        for decision, event in answers.items():
            if decision not in DECISIONS:
                raise DefinitionError(f"{decision!r} is no decision; there are {', '.join(DECISIONS)}")
            if self._kinds.get(event.__name__) != "decision":
                raise DefinitionError(
                    f"step {self._context.step}: nothing takes the answer {event.__name__}; let a step take it, or list "
                    "it in `accepts`"
                )
        digest = canonical_digest(params)
        contract = Contract(
            action=action,
            resource=resource,
            digest=digest,
            requester=f"step:{self._context.step}",
            scope=scope,
            deciders=tuple(deciders),
            within_ms=round(within_s * 1000) if within_s is not None else None,
            answers={decision: event.__name__ for decision, event in answers.items()},
            summary=summary,
        )
        self._context.contracts = (*self._context.contracts, contract)
        return digest

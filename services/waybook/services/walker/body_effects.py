"""What a step's body gets when it asks for Effects."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from waybook.agents.effects import (
    Cancelled,
    EffectRefused,
    LeaseLost,
    OperationFailed,
    OperationFailedForGood,
    OperationFailedForNow,
    Receipt,
    StepTimeOver,
)
from waybook.engine.aggregates.ledger import reservation_parts
from waybook.engine.digest import canonical, canonical_digest
from waybook.engine.inputs import Nothing, Outcome, Refused
from waybook.engine.intents import UNDO, Intend
from waybook.engine.operations import is_open, operation_key
from waybook.engine.run import Action, Operation, Run
from waybook.events.errors import InvalidInput

if TYPE_CHECKING:
    from waybook.services.walker.effects import EffectsDesk

MOST_KEY = 200
_NAME = re.compile(r"[a-z0-9_.-]{1,64}")


class BodyEffects:
    """The Effects of one body: it counts the calls, so a body that begins again counts from 0."""

    def __init__(self, desk: "EffectsDesk", run: Run, action: Action) -> None:
        self._desk = desk
        self._run = run
        self._action = action
        self._calls: Counter[str] = Counter()

    async def run(
        self,
        name: str,
        params: Mapping[str, Any],
        *,
        key: str | None = None,
        approval: str | None = None,
        reservation: str | None = None,
    ) -> Receipt:
        """See Effects."""
        adapter = self._desk.adapter(name)
        _check_names(name, key)
        if reservation is not None:
            reservation_parts(reservation)
        given = _canonical(name, params)
        ordinal = 0
        if key is None:
            ordinal = self._calls[name]
            self._calls[name] += 1
        return await self._until_settled(
            Intend(
                action=self._action.id,
                name=name,
                digest=canonical_digest(given),
                params=await self._desk.params(self._run.key, given),
                ordinal=ordinal,
                key=key,
                call_ms=adapter.call_ms,
                approval=approval,
                reservation=reservation,
            )
        )

    async def compensate(self) -> tuple[Receipt, ...]:
        """See Effects."""
        receipts = []
        for key, operation in reversed(list(self._run.operations.items())):
            if operation.outcome != "succeeded" or operation.disputed or key.startswith(UNDO):
                continue
            receipts.append(await self._until_settled(self._undoing(key, operation)))
        return tuple(receipts)

    def _undoing(self, key: str, operation: Operation) -> Intend:
        name = UNDO + operation.intent.name
        return Intend(
            action=self._action.id,
            name=name,
            digest=operation.intent.digest,
            params=operation.intent.params,
            call_ms=self._desk.adapter(name).call_ms,
            undoes=key,
        )

    async def _until_settled(self, intend: Intend) -> Receipt:
        while True:
            told = await self._desk.once(self._run, self._action, intend)
            if isinstance(told.outcome, Refused) or told.run is None or told.outcome == Nothing("no_worker"):
                refuse(told.outcome)
            self._run = told.run
            operation = told.run.operations[operation_key(told.run, self._action, intend)]
            if is_open(operation):
                await self._desk.resolve(told.run, self._action, operation)
            elif operation.outcome == "succeeded":
                return await self._receipt(operation, intend)
            elif operation.evidence.get("reason") != "deadline_passed":
                _fail(operation)

    async def _receipt(self, operation: Operation, intend: Intend) -> Receipt:
        changed = operation.intent.digest != intend.digest
        if changed:
            await self._desk.note_changed(self._run.key, operation, intend.digest)
        return Receipt(operation.intent.key, operation.evidence, changed)


def refuse(outcome: Outcome) -> NoReturn:
    """Raises what a refused intent means to the body."""
    if not isinstance(outcome, Refused):
        raise LeaseLost(f"the run is in other hands: {outcome}")
    if outcome.reason == "lease_lost":
        raise LeaseLost(outcome.text)
    if outcome.reason == "cancelled":
        raise Cancelled(outcome.text)
    if outcome.reason == "deadline":
        raise StepTimeOver(outcome.text)
    raise EffectRefused(outcome.reason, outcome.text)


def _fail(operation: Operation) -> NoReturn:
    evidence = operation.evidence
    text = f"{operation.intent.name} did not happen: {evidence.get('text', operation.outcome)}"
    wait = evidence.get("retry_after_ms")
    kind: type[OperationFailed] = OperationFailedForNow if evidence.get("retryable", True) else OperationFailedForGood
    raise kind(text, evidence, wait)


def _check_names(name: str, key: str | None) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"a side effect's name has lower case letters, digits, `_`, `-` and `.`: not {name!r}")
    if key is not None and not (0 < len(key) <= MOST_KEY and key.isascii() and key.isprintable()):
        raise InvalidInput(f"the key {key!r} of {name} has to be 1 to {MOST_KEY} characters of printable ASCII")


def _canonical(name: str, params: Mapping[str, Any]) -> bytes:
    try:
        return canonical(dict(params))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the parameters of {name} are not JSON: {error}") from error

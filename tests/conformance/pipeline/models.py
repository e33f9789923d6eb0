"""Scripted models: an adapter of the product's Model port that answers by role, as a case says."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.messages import CLASSIFICATION, DRAFT
from tests.conformance.pipeline.names import to_product

from waybook.agents.model import (
    ModelAnswer,
    ModelRateLimited,
    ModelRequest,
    ModelUnavailable,
    check_text,
    prompt,
)
from waybook.events.engine import TokenUsage

NAME = "scripted"
BENIGN: dict[str, Any] = {"isInjection": False, "confidence": 0.0}
REMARKS = frozenset({"modelUsed", "tokenUsage"})
ROLES = frozenset({"guard", "extraction", "classify", "draft", "self_check"})


class ScriptedModel:
    """Answers every role. `calls` are (role, all the text that the model was given), in order."""

    name = NAME

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.calls: list[tuple[str, str]] = []
        self._results: Mapping[str, Any] = given.get("step_results") or {}
        self._scripts: Mapping[str, Any] = given.get("models") or {}
        self._asked: dict[str, int] = {}
        self.problem: Exception | None = None
        self.full_score = False
        unknown = set(self._scripts) - ROLES
        if unknown:
            raise Unsupported(f"given.models: the roles {', '.join(sorted(unknown))} are not interpreted yet")

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """The scripted answer. Raises what the script says: ModelUnavailable, ModelRateLimited."""
        text = f"{request.instructions}\n\n{prompt(request)}"
        self.calls.append((request.role, text))
        answer = self._answer(request.role, text)
        if answer == "error":
            raise ModelUnavailable(f"the model for {request.role} fails, as the case says")
        if isinstance(answer, Mapping) and "rate_limited" in answer:
            wait_ms = round(float(answer["rate_limited"]) * 1000)
            raise ModelRateLimited("asked to wait, as the case says", retry_after_ms=wait_ms)
        return check_text(_as_answer(request.role, answer), request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelAnswer]:
        """The answer in one piece, then the whole of it."""
        answer = await self.ask(request)
        yield answer.text
        yield answer

    def _answer(self, role: str, text: str) -> Any:
        """What the role answers to its next call: by `models`, else by `step_results`, else by default."""
        number = self._asked[role] = self._asked.get(role, 0) + 1
        script = self._scripts.get(role)
        if isinstance(script, list):
            script = script[min(number, len(script)) - 1]
        if isinstance(script, Mapping) and "when_contains" in script:
            script = script["then"] if script["when_contains"] in text else script.get("else", "benign")
        if script is None or script == "benign":
            return self._default(role, text)
        return script

    def _default(self, role: str, text: str) -> Any:
        if role == "guard":
            return BENIGN
        if role == "extraction":
            return {"facts": [], "questions": []}
        if role == "classify":
            return self._results.get("classify") or CLASSIFICATION
        draft = self._results.get("draft") or DRAFT
        if "by_branch" in draft:
            draft = self._of_branch(draft["by_branch"], role, text)
        if role == "draft":
            return {"text": draft.get("text", "")}
        quality = draft.get("quality") or DRAFT["quality"]
        return {**quality, "score": 1.0} if self.full_score else quality

    def _of_branch(self, drafts: list[dict[str, Any]], role: str, text: str) -> dict[str, Any]:
        """The draft of the branch that asks: by the part that its instructions name, or by the draft under judgement."""
        if role == "draft":
            numbers = [n for n in range(1, len(drafts) + 1) if f"Write part {n} of the reply" in text]
        else:
            numbers = [n for n, draft in enumerate(drafts, 1) if draft["text"] in text]
        if len(numbers) != 1:
            self.problem = Unsupported(f"which branch does this request of {role} belong to? {numbers}")
            raise self.problem
        return drafts[numbers[0] - 1]


def _as_answer(role: str, answer: Any) -> ModelAnswer:
    if role == "draft" and isinstance(answer, Mapping):
        return ModelAnswer(model=_name(answer), text=answer["text"], usage=_usage(answer))
    data = to_product({k: v for k, v in answer.items() if k not in REMARKS})
    if role == "classify" and "intents" not in data:
        data = {"intents": [data]}
    return ModelAnswer(model=_name(answer), text=json.dumps(data), data=data, usage=_usage(answer))


def _name(answer: Mapping[str, Any]) -> str:
    return str(answer.get("modelUsed") or NAME)


def _usage(answer: Mapping[str, Any]) -> TokenUsage | None:
    usage = answer.get("tokenUsage")
    if usage is None:
        return None
    return TokenUsage(usage["promptTokens"], usage["completionTokens"], usage["totalTokens"])

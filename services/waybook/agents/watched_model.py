"""A model as one execution of a step asks it: what its calls cost is counted, and who watches is told of each."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec

from waybook.agents.context import StepContext
from waybook.agents.model import (
    Model,
    ModelAnswer,
    ModelCutOff,
    ModelMisconfigured,
    ModelOutputInvalid,
    ModelRefused,
    ModelRequest,
    prompt,
    system_prompt,
)
from waybook.events.engine import TokenUsage


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call: what was asked, and what came of it. `error` is None where an answer came."""

    request: ModelRequest
    model: str
    text: str
    stop: str
    usage: TokenUsage | None
    duration_ms: int
    error: str | None = None


Watch = Callable[[StepContext, ModelCall], Awaitable[None]]
"""Told of every call. Best effort: it has to raise nothing."""


MORE_ROOM = 2
"""How many times the usual tokens an answer may take that was cut off."""

LETTERS_A_TOKEN = 4
"""By which the tokens of an answer are estimated that nobody counted."""


class WatchedModel:
    """`inner`, for the execution of `context`. Tokens are counted also where the answer was of no use.

    An answer that was cut off is asked for once more with more room: the same question in the same room would end in
    the same place. Both calls are counted and told.
    """

    def __init__(self, inner: Model, context: StepContext, watch: Watch | None = None) -> None:
        self._inner = inner
        self._context = context
        self._watch = watch

    @property
    def name(self) -> str:
        """See Model."""
        return self._inner.name

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """See Model."""
        try:
            return await self._ask(request)
        except ModelCutOff as cut:
            try:
                return await self._ask(msgspec.structs.replace(request, room=request.room * MORE_ROOM))
            except ModelMisconfigured:  # the model's side has no more room to give
                raise cut from None

    async def _ask(self, request: ModelRequest) -> ModelAnswer:
        began = time.monotonic()
        try:
            answer = await self._inner.ask(request)
        except Exception as error:
            await self._failed(request, error, began)
            raise
        await self._answered(request, answer, began)
        return answer

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelAnswer, None]:
        """See Model."""
        began = time.monotonic()
        try:
            async for piece in self._inner.stream(request):
                if isinstance(piece, ModelAnswer):
                    await self._answered(request, piece, began)
                yield piece
        except Exception as error:
            await self._failed(request, error, began)
            raise

    async def _answered(self, request: ModelRequest, answer: ModelAnswer, began: float) -> None:
        self._context.count(answer.model, answer.usage)
        if answer.usage is None and not answer.free:
            self._context.missed(_estimate(request, answer.text))
        if self._watch is not None:
            call = ModelCall(
                request=request, model=answer.model, text=answer.text, stop=answer.stop, usage=answer.usage,
                duration_ms=_elapsed(began),
            )  # fmt: skip
            await self._watch(self._context, call)

    async def _failed(self, request: ModelRequest, error: Exception, began: float) -> None:
        model = getattr(error, "model", None) or self._inner.name
        usage = getattr(error, "usage", None)
        self._context.count(model, usage)
        if usage is None and isinstance(error, ModelOutputInvalid | ModelRefused):
            self._context.missed(_estimate(request, getattr(error, "raw", "")))
        if self._watch is not None:
            call = ModelCall(
                request=request, model=model, text=getattr(error, "raw", ""), stop="", usage=usage,
                duration_ms=_elapsed(began), error=f"{type(error).__name__}: {error}",
            )  # fmt: skip
            await self._watch(self._context, call)


def _estimate(request: ModelRequest, answer: str) -> TokenUsage:
    asked = -(-(len(system_prompt(request)) + len(prompt(request))) // LETTERS_A_TOKEN)
    answered = -(-len(answer) // LETTERS_A_TOKEN)
    return TokenUsage(asked, answered, asked + answered)


def _elapsed(began: float) -> int:
    return round((time.monotonic() - began) * 1000)

"""What a step's questions cost stands on its action, also where an answer was of no use."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from waybook.adapters.memory.notes import MemoryNotes
from waybook.adapters.models.rules import RulesModel
from waybook.agents.context import StepContext
from waybook.agents.model import (
    ModelAnswer,
    ModelCutOff,
    ModelMisconfigured,
    ModelOutputInvalid,
    ModelRequest,
    Section,
    StopReason,
    check_text,
)
from waybook.agents.watched_model import ModelCall, WatchedModel
from waybook.events.engine import TokenUsage
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.model_trace import model_trace

REQUEST = ModelRequest(
    role="draft", instructions="Answer.", sections=(Section("message", "I am ann@example.org, password: hunter22"),)
)


class Costly:
    """Answers with three tokens, or raises after as many."""

    name = "configured"

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        if self._error is not None:
            raise self._error
        return ModelAnswer(model="served", text="Write to bob@example.org", usage=TokenUsage(2, 1, 3))

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelAnswer]:
        yield "Write to "
        yield await self.ask(request)


def context() -> StepContext:
    return StepContext(key=RunKey("main", "inbox", "run1"), step="draft", action="a1", execution="x", attempt=2)


async def test_answers_add_up_and_the_main_one_names_the_model() -> None:
    at = context()
    model = WatchedModel(Costly(), at)
    await model.ask(REQUEST)
    await model.ask(REQUEST)
    assert (at.model, at.usage) == ("served", TokenUsage(4, 2, 6))
    at.used_model("other")
    assert (at.model, at.usage) == ("other", TokenUsage(4, 2, 6))


class Talkative:
    """Is cut off until it has `enough` times the usual room. It counts its tokens only if `counts`."""

    name = "configured"

    def __init__(self, enough: int, most: int = 100, *, counts: bool = True) -> None:
        self.rooms: list[int] = []
        self._enough, self._most, self._counts = enough, most, counts

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.rooms.append(request.room)
        if request.room > self._most:
            raise ModelMisconfigured("400: more tokens than I have")
        stop: StopReason = "end" if request.room >= self._enough else "length"
        usage = TokenUsage(2, request.room, 2 + request.room) if self._counts else None
        return check_text(ModelAnswer(model="served", text="x" * 40, stop=stop, usage=usage), request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelAnswer]:
        yield await self.ask(request)


async def test_an_answer_that_was_cut_off_is_asked_for_once_more_with_more_room() -> None:
    """Both calls are paid for and told; the same question in the same room would end in the same place."""
    at, calls = context(), list[ModelCall]()

    async def watch(_: StepContext, call: ModelCall) -> None:
        calls.append(call)

    model = Talkative(enough=2)
    answer = await WatchedModel(model, at, watch).ask(REQUEST)
    assert (answer.stop, model.rooms, at.usage) == ("end", [1, 2], TokenUsage(4, 3, 7))
    assert [(call.request.room, call.text, (call.error or "")[:11]) for call in calls] == [
        (1, "x" * 40, "ModelCutOff"),
        (2, "x" * 40, ""),
    ]


@pytest.mark.parametrize("most", [1, 100])
async def test_an_answer_that_is_cut_off_again_has_failed_and_may_be_tried_later(most: int) -> None:
    """Twice at most; a model's side that has no more room to give is none that is set up wrongly."""
    model = Talkative(enough=9, most=most)
    with pytest.raises(ModelCutOff, match="stop reason length"):
        await WatchedModel(model, context()).ask(REQUEST)
    assert model.rooms == [1, 2]


async def test_tokens_that_nobody_counted_are_estimated_and_stay_unknown() -> None:
    """Also those of an answer of no use; what is free, such as rules, is missed nowhere."""
    at = context()
    await WatchedModel(Talkative(enough=1, counts=False), at).ask(REQUEST)
    assert at.usage is None and at.uncounted == 1
    assert at.estimate is not None and at.estimate.completion_tokens == 10 and at.estimate.prompt_tokens > 20
    with pytest.raises(ModelCutOff):
        await WatchedModel(Talkative(enough=9, counts=False), at).ask(REQUEST)
    assert at.uncounted == 3
    free = context()
    await WatchedModel(RulesModel(), free).ask(msgspec.structs.replace(REQUEST, role="draft"))
    assert (free.uncounted, free.estimate) == (0, None)


async def test_an_answer_of_no_use_is_paid_for_too() -> None:
    at = context()
    error = ModelOutputInvalid("no JSON", "raw", model="served", usage=TokenUsage(2, 1, 3))
    with pytest.raises(ModelOutputInvalid):
        await WatchedModel(Costly(error), at).ask(REQUEST)
    assert (at.model, at.usage) == ("served", TokenUsage(2, 1, 3))


async def test_a_failure_without_a_name_names_the_configured_model() -> None:
    at = context()
    with pytest.raises(RuntimeError):
        await WatchedModel(Costly(RuntimeError("gone")), at).ask(REQUEST)
    assert (at.model, at.usage) == ("configured", None)


async def test_a_call_stands_in_trace_with_its_action_and_without_addresses_and_keys() -> None:
    notes = MemoryNotes()
    at = context()
    await WatchedModel(Costly(), at, model_trace(notes)).ask(REQUEST)
    ((tenant, kind, payload),) = notes.traced
    record = msgspec.json.decode(payload)
    assert (tenant, kind, record["run"], record["action"], record["attempt"]) == ("main", "model", str(at.key), "a1", 2)
    assert record["usage"]["total_tokens"] == 3 and record["error"] is None and not record["cut"]
    assert "I am [address]" in record["prompt"] and record["answer"] == "Write to [address]"
    assert "hunter22" not in payload.decode() and "example.org" not in payload.decode()


async def test_a_failed_call_and_a_stream_stand_there_too() -> None:
    notes = MemoryNotes()
    with pytest.raises(ModelOutputInvalid):
        await WatchedModel(Costly(ModelOutputInvalid("no JSON", "me@example.org")), context(), model_trace(notes)).ask(
            REQUEST
        )
    heard = [piece async for piece in WatchedModel(Costly(), context(), model_trace(notes)).stream(REQUEST)]
    failed, streamed = (msgspec.json.decode(payload) for _, _, payload in notes.traced)
    assert failed["error"] == "ModelOutputInvalid: no JSON" and failed["answer"] == "[address]"
    assert heard[0] == "Write to " and streamed["error"] is None

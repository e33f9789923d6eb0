"""What a server of the OpenAI chat protocol answers, read strictly, and made an answer of the `Model` port."""

import re
from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
import msgspec

from waybook.agents.model import (
    ModelAnswer,
    ModelOutputInvalid,
    ModelRefused,
    ModelRequest,
    StopReason,
    check_text,
)
from waybook.events.engine import TokenUsage

LONGEST_JSON: Final = 200_000
"""Characters of a structured answer, at most."""
_STOPS: Final[Mapping[str, StopReason]] = {
    "stop": "end",
    "end_turn": "end",
    "eos": "end",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_FENCED = re.compile(r"^\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_THOUGHT = re.compile(r"^\s*<think>.*?</think>\s*", re.DOTALL)


class _Part(msgspec.Struct):
    text: str = ""


class _Function(msgspec.Struct):
    name: str | None = None


class _Call(msgspec.Struct):
    function: _Function | None = None


class Message(msgspec.Struct):
    """A message, or a piece of one in a stream."""

    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None

    @property
    def text(self) -> str:
        """The text, whole or in parts."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""

    @property
    def tools(self) -> list[str]:
        """Names of tools that it wants to call."""
        called = [call.function for call in self.tool_calls or ()]
        called += [self.function_call] if self.function_call is not None else []
        return [(one.name if one is not None else None) or "unnamed" for one in called]


class Choice(msgspec.Struct):
    """One of the answers; we ask for one."""

    message: Message | None = None
    delta: Message | None = None
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    """An answer, or a piece of one in a stream. `usage` is read apart: a broken count spoils no answer."""

    choices: list[Choice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


class Reply(msgspec.Struct, kw_only=True):
    """What was said, gathered from an answer or from a stream."""

    model: str
    text: str = ""
    refusal: str = ""
    tools: list[str] = []
    finish: str | None = None
    usage: TokenUsage | None = None

    def take(self, piece: Completion, *, streamed: bool) -> str:
        """Adds an answer, or a piece of one; the text that is new."""
        self.model = piece.model or self.model
        self.usage = read_usage(piece.usage) or self.usage
        if not piece.choices:
            return ""
        choice = piece.choices[0]
        self.finish = choice.finish_reason or self.finish
        message = choice.delta if streamed else choice.message
        if message is None:
            return ""
        self.text += message.text
        self.refusal += message.refusal or ""
        self.tools = [*self.tools, *message.tools]
        return message.text


def read_usage(value: Any) -> TokenUsage | None:
    """The counts of a `usage`; None where it counts nothing, or nonsense. A missing total is the sum."""
    if not isinstance(value, Mapping):
        return None
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    counts = [value.get(name) for name in names]
    known = [n if isinstance(n, int) and not isinstance(n, bool) and n >= 0 else None for n in counts]
    prompt, completion, total = known
    if prompt is None or completion is None:
        return None
    return TokenUsage(prompt, completion, total if total is not None else prompt + completion)


def answer_of(reply: Reply, request: ModelRequest) -> ModelAnswer:
    """A reply as the answer to a request, checked. Raises ModelOutputInvalid, ModelRefused."""
    model, usage = reply.model, reply.usage
    if reply.refusal:
        raise ModelRefused(f"{model} declined to answer ({request.role})", model=model, usage=usage)
    if reply.tools:
        names = ", ".join(sorted(set(reply.tools)))[:200]
        raise ModelOutputInvalid(
            f"{model} wants to call tools that it was not given ({names})", reply.text, model=model, usage=usage
        )
    text = _THOUGHT.sub("", reply.text)
    answer = ModelAnswer(model=model, text=text, usage=usage, stop=_STOPS.get(reply.finish or "", "other"))
    if request.schema is None:
        return check_text(answer, request)
    return _structured(answer, msgspec.structs.replace(request, max_chars=LONGEST_JSON))


def _structured(answer: ModelAnswer, request: ModelRequest) -> ModelAnswer:
    checked = check_text(answer, request)
    fenced = _FENCED.match(checked.text)
    text = fenced.group(1) if fenced else checked.text
    try:
        data = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ModelOutputInvalid(
            f"{answer.model} answered no valid JSON: {error}", answer.text, model=answer.model, usage=answer.usage
        ) from error
    wrong = first_error(request.schema or {}, data)
    if wrong:
        raise ModelOutputInvalid(
            f"{answer.model} answered JSON of another shape: {wrong}",
            answer.text,
            model=answer.model,
            usage=answer.usage,
        )
    return msgspec.structs.replace(checked, text=text, data=data)


def first_error(schema: Mapping[str, Any], data: Any) -> str:
    """What a JSON Schema has against `data`, with the place; an empty text when nothing."""
    for error in jsonschema_rs.validator_for(dict(schema)).iter_errors(data):
        place = "/".join(str(part) for part in error.instance_path)
        return f"at {place or 'the top'}: {error.message}"[:300]
    return ""

"""`local`: a small model on this machine. What it is asked and may answer is bounded, so that the answer is always whole.

llama.cpp writes under a grammar: JSON by the schema of the request with every text and list bounded, a reply as a few
sentences. So even a model of 135 million parameters gives valid answers; whether they are good is for people to judge.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import msgspec

from waybook.adapters.models.local_server import LocalServer
from waybook.adapters.models.openai_compatible import Endpoint, OpenAICompatible
from waybook.agents.model import ModelAnswer, ModelRefused, ModelRequest, Section

LONGEST_TEXT: Final = 160
"""Characters of a text in a structured answer."""
LONGEST_LIST: Final = 2
"""Texts in a list; of objects one."""
MOST_SURE: Final = 0.5
"""The most that the model may claim of its own answers: below every threshold, so that a person looks at each."""
SENTENCES: Final = 4
LONGEST_SENTENCE: Final = 160
STEPS: Final = 10
"""Into so many steps a share between two bounds is divided: the grammar knows no bounds of fractions."""
MOST_TOKENS: Final = 900
REPLY_GRAMMAR: Final = (
    f'root ::= sentence (gap sentence){{0,{SENTENCES - 1}}}\n'
    'gap ::= " " | "\\n\\n"\n'
    f'sentence ::= [^ #*<>`|.!?\\u3002\\uFF01\\uFF1F\\x00-\\x1F] [^.!?\\u3002\\uFF01\\uFF1F\\x00-\\x1F]{{1,{LONGEST_SENTENCE}}} [.!?\\u3002]\n'
)  # fmt: skip


class LocalModel:
    """A Model in a process of its own, which is started anew when it is gone. One question at a time; others wait.

    A role's question that is repeated at once gets the same answer, at no cost.
    `prompt_tokens`: what comes from outside is cut to it, by an estimate; a guard's text never is: it is refused.
    """

    def __init__(
        self,
        server: LocalServer,
        *,
        timeout_s: float = 300.0,
        prompt_tokens: int = 1200,
        most_sure: float = MOST_SURE,
    ) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._prompt_tokens = min(prompt_tokens, server.context - MOST_TOKENS)
        self._client: OpenAICompatible | None = None
        self._turn = asyncio.Lock()
        self._most_sure = most_sure
        self._last: dict[str, tuple[ModelRequest, ModelAnswer]] = {}

    @property
    def name(self) -> str:
        """See Model."""
        return self._server.name

    async def start(self) -> None:
        """Loads the model now rather than with the first question. Raises ModelUnavailable."""
        await self._ready()

    async def aclose(self) -> None:
        """Ends the process."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        await self._server.stop()

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """See Model."""
        fitting = self._fitting(request)
        async with self._turn:
            last = self._last.get(request.role)
            if last is not None and last[0] == fitting:
                return msgspec.structs.replace(last[1], usage=None, free=True)
            client = await self._ready()
            answer = await client.ask(fitting)
            self._last[request.role] = fitting, answer
            return answer

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelAnswer, None]:
        """See Model."""
        fitting = self._fitting(request)
        async with self._turn:
            client = await self._ready()
            async with aclosing(client.stream(fitting)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _ready(self) -> OpenAICompatible:
        if self._client is not None and self._server.is_running:
            return self._client
        if self._client is not None:
            await self._client.aclose()
            self._client = None
        await self._server.start()
        endpoint = Endpoint(
            url=self._server.url,
            name=self._server.name,
            key=self._server.key,
            timeout_s=self._timeout_s,
            at_once=1,
            direct=True,
        )
        self._client = OpenAICompatible(endpoint, partial(shape, most_sure=self._most_sure))
        return self._client

    def _fitting(self, request: ModelRequest) -> ModelRequest:
        short = fitting(request, self._prompt_tokens)
        if request.role == "guard" and short is not request:
            raise ModelRefused(f"{self.name} cannot read a text of this length whole, and a guard has to")
        return short


def shape(request: ModelRequest, most_sure: float = MOST_SURE) -> Mapping[str, Any]:
    """What llama.cpp is told beside the common fields: the grammar, and to be the same every time."""
    told: dict[str, Any] = {
        "temperature": 0.0,
        "max_tokens": MOST_TOKENS * request.room,
        "seed": 1,
        "repeat_penalty": 1.1,
    }
    if request.schema is None:
        return {**told, "grammar": REPLY_GRAMMAR}
    bound = {"name": request.role, "schema": bounded(request.schema, most_sure), "strict": True}
    return {**told, "response_format": {"type": "json_schema", "json_schema": bound}}


def bounded(schema: Mapping[str, Any], most_sure: float = MOST_SURE) -> dict[str, Any]:
    """A JSON Schema that admits a part of what `schema` does: short texts and lists, shares in steps up to a limit."""
    kind = schema.get("type")
    if kind == "number" and "minimum" in schema and "maximum" in schema:
        least = float(schema["minimum"])
        most = max(least, min(float(schema["maximum"]), most_sure))
        return {"enum": sorted({round(least + (most - least) * i / STEPS, 4) for i in range(STEPS + 1)})}
    own = dict(schema)
    if kind == "string" and "enum" not in schema:
        own["maxLength"] = min(schema.get("maxLength", LONGEST_TEXT), LONGEST_TEXT)
    if kind == "array":
        items = bounded(schema.get("items", {}), most_sure)
        longest = 1 if items.get("type") == "object" else LONGEST_LIST
        least_items = schema.get("minItems", 0)
        own.update(items=items, maxItems=max(least_items, min(schema.get("maxItems", longest), longest)))
    if kind == "object":
        parts = {name: bounded(part, most_sure) for name, part in schema.get("properties", {}).items()}
        own.update(properties=parts, additionalProperties=False)
    return own


def fitting(request: ModelRequest, tokens: int) -> ModelRequest:
    """`request`, its untrusted sections cut in proportion where they are too long together; the same where they fit."""
    outside = [section for section in request.sections if not section.trusted]
    needed = sum(estimated_tokens(section.text) for section in outside)
    if needed <= tokens:
        return request
    share = tokens / needed
    sections = tuple(one if one.trusted else _cut(one, share) for one in request.sections)
    return msgspec.structs.replace(request, sections=sections)


def estimated_tokens(text: str) -> int:
    """A careful guess: three ASCII letters a token, two tokens for any other letter."""
    ascii_letters = sum(1 for letter in text if letter.isascii())
    return ascii_letters // 3 + 2 * (len(text) - ascii_letters)


def _cut(section: Section, share: float) -> Section:
    return msgspec.structs.replace(section, text=section.text[: int(len(section.text) * share)])

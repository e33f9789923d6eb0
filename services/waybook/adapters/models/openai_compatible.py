"""Any server of the OpenAI chat protocol as a `Model`: by base URL, model name, and a key from the environment."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal

import msgspec
import openai
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from waybook.adapters.models.openai_errors import Side, model_error
from waybook.adapters.models.openai_wire import LONGEST_JSON, Completion, Reply, answer_of
from waybook.agents.model import ModelAnswer, ModelOutputInvalid, ModelRequest, ModelUnavailable, prompt, system_prompt

Structured = Literal["schema", "object", "text"]
"""How a shape is asked for: by JSON Schema, by JSON alone (the schema stands in the prompt), by the prompt alone."""

MOST_TOKENS: Final[Mapping[str, int]] = {
    "guard": 1000,
    "extraction": 4000,
    "classify": 2000,
    "draft": 4000,
    "self_check": 1000,
}
"""Tokens of an answer by role, at most: what stops a model that does not. An answer that reaches it counts as cut off."""
OTHER_ROLES: Final = 4000
_RAW_LIMIT: Final = 2000


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One server and one model of it. `key_env` names where `key` came from, for messages.

    `timeout_s`: of a whole answer, in a stream of each piece. `at_once`: requests side by side, the others wait here.
    `tokens_field`: the name of the limit; newer models of some services know only `max_completion_tokens`.
    `direct`: past the proxies that the environment names.
    """

    url: str
    name: str
    key: str = msgspec.field(default="")
    key_env: str = ""
    timeout_s: float = 60.0
    connect_s: float = 5.0
    at_once: int = 8
    structured: Structured = "schema"
    max_tokens: Mapping[str, int] = {}
    temperature: Mapping[str, float] = {}
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    direct: bool = False

    def __repr__(self) -> str:
        return f"Endpoint({self.name} at {self.url})"


Shape = Callable[[ModelRequest], Mapping[str, Any]]
"""What a particular server is told beside the common fields; it may replace `response_format`."""


class OpenAICompatible:
    """A Model behind the chat completions of a server. Nothing is tried again here: the engine does that, and notes it.

    No tools are offered. `aclose` when done.
    """

    def __init__(self, endpoint: Endpoint, shape: Shape | None = None) -> None:
        self._endpoint = endpoint
        self._shape = shape
        self._side = Side(endpoint.url, endpoint.name, endpoint.key_env)
        self._slots = asyncio.Semaphore(endpoint.at_once)
        timeout = openai.Timeout(endpoint.timeout_s, connect=min(endpoint.connect_s, endpoint.timeout_s))
        self._client = AsyncOpenAI(
            base_url=endpoint.url,
            api_key=endpoint.key or "none",  # servers that ask for no key ignore it, and the client wants one
            timeout=timeout,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(
                timeout=timeout,
                trust_env=not endpoint.direct,
                follow_redirects=False,
                # Certificates are read for 0.2 s; where everything is plain HTTP there is none to check.
                verify=not (endpoint.direct and endpoint.url.startswith("http://")),
            ),
        )

    @property
    def name(self) -> str:
        """See Model: the configured name; an answer carries the one that the server tells."""
        return self._endpoint.name

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """See Model."""
        async with self._slots:
            try:
                async with asyncio.timeout(self._endpoint.timeout_s):
                    raw = await self._client.chat.completions.with_raw_response.create(**self._body(request))
                    content, kind = raw.http_response.content, raw.headers.get("content-type", "")
            except TimeoutError as error:
                raise self._late() from error
            except (openai.OpenAIError, ValueError) as error:
                raise model_error(error, self._side) from error
        reply = Reply(model=self._endpoint.name)
        reply.take(self._read(content, kind), streamed=False)
        return answer_of(reply, request)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelAnswer, None]:
        """See Model. Close it (`contextlib.aclosing`) when you stop before its end: it holds a connection."""
        reply = Reply(model=self._endpoint.name)
        limit = LONGEST_JSON if request.schema is not None else request.max_chars
        async with self._slots:
            async with aclosing(self._pieces(request)) as pieces:
                async for piece in pieces:
                    new = reply.take(piece, streamed=True)
                    if len(reply.text) > limit:
                        text = f"{reply.model} answered more than {limit} characters"
                        raise ModelOutputInvalid(text, reply.text, model=reply.model, usage=reply.usage)
                    if new:
                        yield new
        if reply.finish is None:
            raise ModelUnavailable(f"the stream of {self._endpoint.url} broke off after {len(reply.text)} characters")
        yield answer_of(reply, request)

    async def _pieces(self, request: ModelRequest) -> AsyncGenerator[Completion, None]:
        body = {**self._body(request), "stream": True, "stream_options": {"include_usage": True}}
        try:
            async with asyncio.timeout(self._endpoint.timeout_s):
                answered = await self._client.chat.completions.create(**body)
            async with answered as chunks:
                while True:
                    async with asyncio.timeout(self._endpoint.timeout_s):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        return
                    yield self._convert(chunk.to_dict(warnings=False))
        except TimeoutError as error:
            raise self._late() from error
        except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:
            # ValueError: a line that is no JSON or no UTF-8. The others: a body that is no stream at all.
            raise model_error(error, self._side) from error

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        endpoint, schema = self._endpoint, request.schema
        system = system_prompt(request)
        if schema is not None and endpoint.structured != "schema":
            system += f"\n\nAnswer with one JSON object that follows this JSON Schema:\n{json.dumps(schema)}"
        body: dict[str, Any] = {
            "model": endpoint.name,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt(request)}],
            endpoint.tokens_field: self._most_tokens(request),
        }
        if request.role in endpoint.temperature:
            body["temperature"] = endpoint.temperature[request.role]
        if schema is not None and endpoint.structured == "schema":
            shape = {"name": request.role, "schema": schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif schema is not None and endpoint.structured == "object":
            body["response_format"] = {"type": "json_object"}
        if self._shape is not None:
            more = dict(self._shape(request))
            known: dict[str, Any] = {
                name: more.pop(name) for name in ("response_format", "temperature", "max_tokens") if name in more
            }
            body.update(known)
            body["extra_body"] = more
        return body

    def _most_tokens(self, request: ModelRequest) -> int:
        usual = self._endpoint.max_tokens.get(request.role, MOST_TOKENS.get(request.role, OTHER_ROLES))
        return usual * request.room

    def _read(self, content: bytes, kind: str) -> Completion:
        try:
            said = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            what = kind.partition(";")[0] or "something"
            text = f"{self._endpoint.url} answered {what} that is no JSON; is it the API's base (mostly .../v1)?"
            raise ModelUnavailable(text) from error
        return self._convert(said)

    def _convert(self, said: Any) -> Completion:
        try:
            completion = msgspec.convert(said, Completion)
        except msgspec.ValidationError as error:
            raise ModelOutputInvalid(
                f"{self._endpoint.url} answered JSON that is no completion: {error}",
                repr(said)[:_RAW_LIMIT],
                model=self._endpoint.name,
            ) from error
        if completion.error:
            inner = completion.error
            text = str(inner.get("message") if isinstance(inner, dict) else inner)
            raise model_error(ValueError(text), self._side)
        return completion

    def _late(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self._endpoint.url} did not answer within {self._endpoint.timeout_s:g} s")

"""Calling an HTTP service once: an Idempotency-Key on every request, and what an answer says about the effect."""

import time
from collections.abc import Mapping
from typing import Any

import httpx2
import msgspec

from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure
from waybook.agents.retry_after import retry_after_s
from waybook.engine.intents import CALL_MS
from waybook.events.errors import InvalidInput

SETTLE_MS = 60_000
"""A service may go on working off a request so long after its caller went away."""

FIND_S = 20.0
LONGEST_BODY = 4_000
FOR_NOW = frozenset({408, 425, 429, 503})
"""Answers of a service that did not begin: the same request may be sent again later."""


class HttpCall:
    """Sends requests to one service. Parameters: `path` below `base_url`, `json` (a body), `method` (POST by default).

    Every attempt carries the same `Idempotency-Key`, so a service that honours it makes no second effect even where
    this side cannot tell. 2xx is done; 408, 425, 429, 503, other 4xx, 3xx and refused connections surely did nothing;
    everything else is unsure.

    `find_path` (with `{key}`): where the service tells by GET whether it has the key: 200 yes, 404 or 410 no. Without
    it nobody can be asked. `find_is_authoritative`: its 404 is to be believed. `undo_path` (with `{key}` of what is
    undone): where `undo_method` takes it back. `headers` hold what parameters must not, such as credentials.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        find_path: str | None = None,
        find_is_authoritative: bool = False,
        undo_path: str | None = None,
        undo_method: str = "DELETE",
        key_header: str = "Idempotency-Key",
        settle_ms: int = SETTLE_MS,
        call_ms: int = CALL_MS,
    ) -> None:
        self.call_ms = call_ms
        self.settle_ms = settle_ms
        self.find_is_authoritative = find_is_authoritative and find_path is not None
        self._find_path = find_path
        self._undo_path = undo_path
        self._undo_method = undo_method
        self._key_header = key_header
        # Without connections that are kept: one that the service has closed would make an outcome unsure for nothing.
        self._client = httpx2.AsyncClient(
            base_url=base_url,
            headers=dict(headers or {}),
            limits=httpx2.Limits(max_keepalive_connections=0),
            follow_redirects=False,
        )

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        try:
            path = _path(call.params)
        except InvalidInput as error:
            return NotDone(str(error), retryable=False)
        method = str(call.params.get("method", "POST")).upper()
        return await self._change(method, path, call, deadline, body=call.params.get("json"))

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        if self._find_path is None:
            return Unsure("the service cannot be asked for a key", again=False)
        try:
            answer = await self._client.get(self._find_path.format(key=call.idempotency_key), timeout=FIND_S)
        except httpx2.RequestError as error:
            return Unsure(_text(error))
        if answer.status_code == httpx2.codes.OK:
            return Done(_evidence(answer, call))
        if answer.status_code in (httpx2.codes.NOT_FOUND, httpx2.codes.GONE):
            return NotThere({"status": answer.status_code})
        return Unsure(f"the service answered {answer.status_code}")

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter. What is gone already counts as undone."""
        if self._undo_path is None:
            return NotDone("the service takes nothing back", retryable=False)
        path = self._undo_path.format(key=evidence.get("key", ""))
        answer = await self._change(self._undo_method, path, call, deadline)
        gone = isinstance(answer, NotDone) and answer.evidence.get("status") in (404, 410)
        return Done(answer.evidence) if gone and isinstance(answer, NotDone) else answer

    async def aclose(self) -> None:
        """Closes the client."""
        await self._client.aclose()

    async def _change(
        self, method: str, path: str, call: EffectCall, deadline: Deadline, *, body: Any = None
    ) -> Done | NotDone | Unsure:
        sent = False

        async def trace(event: str, info: Any) -> None:
            nonlocal sent
            if event.endswith("send_request_headers.started"):
                deadline.check()
                sent = True

        try:
            answer = await self._client.request(
                method,
                path,
                json=body,
                headers={self._key_header: call.idempotency_key},
                timeout=max(0.001, deadline.remaining_s),
                extensions={"trace": trace},
            )
        except httpx2.RequestError as error:
            return Unsure(_text(error)) if sent else NotDone(_text(error))
        return _meaning(answer, call)


def _meaning(answer: httpx2.Response, call: EffectCall) -> Done | NotDone | Unsure:
    status, evidence = answer.status_code, _evidence(answer, call)
    if answer.is_success:
        return Done(evidence)
    said = f"the service answered {status}"
    if status in FOR_NOW:
        seconds = retry_after_s(answer.headers.get("Retry-After"), time.time_ns() // 1_000_000)
        return NotDone(said, evidence, retry_after_ms=round(seconds * 1000) if seconds is not None else None)
    if status < 500:
        return NotDone(said, evidence, retryable=False)
    return Unsure(said, evidence)


def _path(params: Mapping[str, Any]) -> str:
    """Raises InvalidInput for what would leave the service: parameters may come from a model."""
    path = params.get("path")
    if not isinstance(path, str) or not path.startswith("/") or path.startswith("//") or "\\" in path:
        raise InvalidInput("`path` has to begin with one slash")
    if ".." in path.partition("?")[0].split("/"):
        raise InvalidInput("`path` must not climb")
    return path


def _evidence(answer: httpx2.Response, call: EffectCall) -> dict[str, Any]:
    evidence: dict[str, Any] = {"status": answer.status_code, "key": call.idempotency_key}
    try:
        if len(answer.content) <= LONGEST_BODY:
            evidence["body"] = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        evidence["body"] = answer.text
    return evidence


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

"""What every way in which a server of the OpenAI protocol fails means for a step (docs/models.md has the table)."""

import time
from typing import Any, Final

import msgspec
import openai

from waybook.agents.model import (
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
)
from waybook.agents.redaction import redacted
from waybook.agents.retry_after import retry_after_s
from waybook.events.errors import WaybookError

PAUSE_MS: Final = 20_000
"""How long is waited after a 429 that names no time."""
LONGEST_SAID: Final = 300
_USED_UP: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_POLICY: Final = frozenset({"content_filter", "content_policy_violation"})
_FOR_NOW: Final = frozenset({408, 409, 425})


class Side(msgspec.Struct, frozen=True):
    """Whom was asked, for messages: the address, the model's name, the variable that holds the key."""

    url: str
    name: str
    key_env: str = ""


def model_error(error: Exception, side: Side) -> WaybookError:
    """The port's error for one of the client's."""
    if isinstance(error, openai.APIStatusError):
        return _status_error(error, side)
    if isinstance(error, openai.APITimeoutError):
        return ModelUnavailable(f"{side.url} did not answer in time")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        return ModelUnavailable(f"{side.url} cannot be reached: {type(cause).__name__}: {_short(str(cause))}")
    return ModelUnavailable(f"{side.url} failed: {_short(str(error))}")


def _status_error(error: openai.APIStatusError, side: Side) -> WaybookError:
    status, said = error.status_code, _said(error)
    answered = f"{side.url} answered {status}{f': {said}' if said else ''}"
    code = str(error.code or error.type or "")
    if code in _USED_UP or error.type in _USED_UP:
        return ModelMisconfigured(f"{answered}. The account's quota is used up; waiting does not fill it")
    if code in _POLICY:
        return ModelRefused(f"{side.name} declined to answer: {said}", model=side.name)
    wait_ms = _wait_ms(error)
    if status == 429 or (wait_ms is not None and status >= 500):
        return ModelRateLimited(answered, PAUSE_MS if wait_ms is None else wait_ms)
    if status >= 500 or status in _FOR_NOW:
        return ModelUnavailable(answered)
    return ModelMisconfigured(f"{answered}. {_way_out(status, side)}")


def _way_out(status: int, side: Side) -> str:
    if status in (401, 403):
        held = (
            f"the key in {side.key_env}" if side.key_env else "that it gets no key (name a variable by model_key_env)"
        )
        return f"It does not accept {held} for {side.name}; put that right, then retry the run"
    if status == 404:
        return f"There is no model {side.name} there, or the URL is not the API's base (it mostly ends in /v1)"
    if status in (300, 301, 302, 303, 307, 308):
        return "It points elsewhere; name the API's real base as model_url"
    return f"It does not take this request for {side.name}: it may be too long for the model, or `structured` another"


def _wait_ms(error: openai.APIStatusError) -> int | None:
    """What Retry-After names; `retry-after-ms` is the finer one that some servers send beside it."""
    headers = error.response.headers
    fine = headers.get("retry-after-ms", "").strip()
    if fine.isascii() and fine.isdigit():
        return int(fine[:12])
    seconds = retry_after_s(headers.get("Retry-After"), time.time_ns() // 1_000_000)
    return None if seconds is None else round(seconds * 1000)


def _said(error: openai.APIStatusError) -> str:
    """The server's own words, where it has any; never a page of HTML."""
    body: Any = error.body
    if isinstance(body, dict):
        inner = body.get("error")
        text = body.get("message") or (inner.get("message") if isinstance(inner, dict) else inner)
        return _short(str(text)) if text else ""
    if isinstance(body, str) and not body.lstrip().startswith("<"):
        return _short(body)
    return ""


def _short(text: str) -> str:
    return redacted(" ".join(text.split()))[:LONGEST_SAID]

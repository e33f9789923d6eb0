"""Model calls in TRACE: what was asked and answered, redacted, with the run and the action that asked."""

import msgspec

from waybook.agents.context import StepContext
from waybook.agents.model import prompt, system_prompt
from waybook.agents.redaction import redacted
from waybook.agents.watched_model import ModelCall, Watch
from waybook.engine.ports import Notes

LONGEST = 32_000
"""Characters of a prompt and of an answer that a record keeps."""


def model_trace(notes: Notes) -> Watch:
    """A watch that leaves a record of kind `model` for each call. Lost where the server is away; nothing depends on it."""

    async def write(context: StepContext, call: ModelCall) -> None:
        asked = f"{system_prompt(call.request)}\n\n{prompt(call.request)}"
        record = {
            "kind": "model",
            "run": str(context.key),
            "step": context.step,
            "action": context.action,
            "attempt": context.attempt,
            "role": call.request.role,
            "model": call.model,
            "stop": call.stop,
            "error": redacted(call.error) if call.error is not None else None,
            "usage": call.usage,
            "duration_ms": call.duration_ms,
            "prompt": redacted(asked[:LONGEST]),
            "answer": redacted(call.text[:LONGEST]),
            "cut": len(asked) > LONGEST or len(call.text) > LONGEST,
        }
        await notes.trace(context.key.tenant, "model", msgspec.json.encode(record))

    return write

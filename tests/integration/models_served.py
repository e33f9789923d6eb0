"""A model's server in a thread of its own, for commands that run in this process or in another."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.contract.models.model_service import ModelService, Said, completion, model_service

ANSWERS: dict[str, Any] = {
    "guard": {"is_injection": False, "confidence": 0.1},
    "extraction": {"facts": ["The order is 4711."], "questions": ["Where is it?"]},
    "classify": {
        "intents": [
            {
                "category": "support",
                "priority": "normal",
                "sentiment": "neutral",
                "intent": "question",
                "confidence": 0.9,
            }
        ],
        "language": "en",
        "needs_response": True,
    },
    "self_check": {"score": 0.9, "complete": True, "grounded": True, "flags": []},
}


def role_of(body: dict[str, Any]) -> str:
    """The role that a request was made for: a draft is asked for without a shape."""
    shape = body.get("response_format")
    return str(shape["json_schema"]["name"]) if shape else "draft"


def well_behaved(body: dict[str, Any]) -> Said:
    """A fitting answer to every role."""
    role = role_of(body)
    return completion("Hello,\n\nit is on its way.\n\nKind regards" if role == "draft" else json.dumps(ANSWERS[role]))


@contextmanager
def served(service: ModelService) -> Iterator[ModelService]:
    """Serves for the time of the block."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    stop: asyncio.Event | None = None

    async def serve() -> None:
        nonlocal stop
        stop = asyncio.Event()
        async with model_service(service):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield service
    finally:
        assert stop is not None
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()

"""A server of the OpenAI chat protocol on loopback that answers as it is told to, also in every wrong way."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class Said:
    """One answer. `body` is sent as it stands; `cut`: the connection is dropped after it; `late_s`: before it."""

    def __init__(
        self,
        body: str | bytes | dict[str, Any] = "",
        *,
        status: int = 200,
        headers: Sequence[str] = (),
        kind: str = "application/json",
        cut: bool = False,
        late_s: float = 0.0,
        longer: int = 0,
    ) -> None:
        raw = json.dumps(body) if isinstance(body, dict) else body
        self.body = raw.encode() if isinstance(raw, str) else raw
        self.status = status
        self.headers = tuple(headers)
        self.kind = kind
        self.cut = cut
        self.late_s = late_s
        self.longer = longer


class ModelService:
    """`answers` are given in turn, the last one for ever, or chosen by `answer_to`. `requests` keeps decoded bodies."""

    def __init__(self, *answers: Said, answer_to: Callable[[dict[str, Any]], Said] | None = None) -> None:
        self.answers = list(answers)
        self.answer_to = answer_to
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.asked = asyncio.Event()
        self.at_once = self.most_at_once = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, one after the other."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = head.strip().split("\r\n")[1:]
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                self.requests.append(body)
                self.keys.append(headers.get("authorization", ""))
                self.asked.set()
                await self._answer(body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # the end of the service
        finally:
            writer.close()

    async def _answer(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        said = self.answer_to(body) if self.answer_to is not None else self.answers[0]
        if len(self.answers) > 1:
            self.answers.pop(0)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(said.late_s)
        self.at_once -= 1
        size = len(said.body) + said.longer
        head = [f"HTTP/1.1 {said.status} X", f"Content-Type: {said.kind}", f"Content-Length: {size}", *said.headers]
        writer.write("\r\n".join([*head, "", ""]).encode() + said.body)
        await writer.drain()
        if said.cut:
            writer.transport.abort()


@asynccontextmanager
async def model_service(service: ModelService) -> AsyncIterator[ModelService]:
    """Serves on a free port of loopback for the time of the block."""
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    try:
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield service
    finally:
        server.close()


def completion(content: Any = "Hello", *, finish: Any = "stop", usage: Any = USAGE, **message: Any) -> Said:
    """A whole answer."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "served-1", "choices": [choice]}
    return Said({**body, **({"usage": usage} if usage is not None else {})})


def pieces(
    *contents: str, finish: str | None = "stop", usage: Any = USAGE, done: bool = True, cut: bool = False
) -> Said:
    """An answer as server-sent events."""
    chunks: list[dict[str, Any]] = [_chunk({"content": text}, None) for text in contents]
    if finish is not None:
        chunks.append(_chunk({}, finish))
    if usage is not None:
        chunks.append({**_chunk({}, None), "choices": [], "usage": usage})
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + ("data: [DONE]\n\n" if done else "")
    return Said(text, kind="text/event-stream", cut=cut, longer=1000 if cut else 0)


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "served-1", "choices": [choice]}


def refused(status: int, message: str = "no", *headers: str, code: str | None = None) -> Said:
    """An error of the protocol."""
    return Said({"error": {"message": message, "type": "error", "code": code}}, status=status, headers=headers)

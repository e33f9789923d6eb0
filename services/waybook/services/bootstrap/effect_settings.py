"""Adapters of side effects as the settings name them: tables `[effects.NAME]` of `waybook.toml`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from waybook.adapters.effects.files import FileWrite
from waybook.adapters.effects.objects import ObjectWrite
from waybook.agents.effects import EffectAdapter
from waybook.engine.ports import Objects
from waybook.events.errors import InvalidInput

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class FileEffect(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="adapter", tag="file"
):
    """Files below `folder`."""

    folder: str

    def build(self, objects: Objects) -> EffectAdapter:
        """The adapter."""
        return FileWrite(Path(self.folder).expanduser(), objects)


class ObjectEffect(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="adapter", tag="object"
):
    """Objects in the bucket `artifacts`."""

    def build(self, objects: Objects) -> EffectAdapter:
        """The adapter."""
        return ObjectWrite(objects)


class HttpEffect(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="adapter", tag="http"
):
    """Requests to `base_url`. `headers_env` maps headers to environment variables that hold them, such as credentials."""

    base_url: str
    headers: dict[str, str] = {}
    headers_env: dict[str, str] = {}
    find_path: str | None = None
    find_is_authoritative: bool = False
    undo_path: str | None = None
    call_s: Seconds = 30.0
    settle_s: Seconds = 60.0

    def build(self, objects: Objects) -> EffectAdapter:
        """The adapter. Raises InvalidInput for a variable that is not set, and without the extra `http`."""
        try:
            from waybook.adapters.effects.http import HttpCall
        except ImportError as error:
            raise InvalidInput("an effect by `http` needs the extra: pip install 'waybook[http]'") from error
        secret = {header: _secret(variable) for header, variable in self.headers_env.items()}
        return HttpCall(
            self.base_url,
            headers={**self.headers, **secret},
            find_path=self.find_path,
            find_is_authoritative=self.find_is_authoritative,
            undo_path=self.undo_path,
            call_ms=round(self.call_s * 1000),
            settle_ms=round(self.settle_s * 1000),
        )


class JournalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mailbox over IMAP that the mail server fills. `is_complete`: what is not there did not leave."""

    host: str
    port: int | None = None
    username: str
    password_env: str
    mailbox: str = "Sent"
    is_complete: bool = False
    tls: bool = True


class SmtpEffect(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="adapter", tag="smtp"
):
    """Mails by a mail server. `password_env` names the environment variable that holds the password."""

    host: str
    port: int = 587
    sender: str
    username: str | None = None
    password_env: str | None = None
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    journal: JournalSettings | None = None
    call_s: Seconds = 30.0
    settle_s: Seconds = 600.0

    def build(self, objects: Objects) -> EffectAdapter:
        """The adapter. Raises InvalidInput for a variable that is not set, and without the extra `mail`."""
        try:
            from waybook.adapters.effects.journal import ImapJournal
            from waybook.adapters.effects.smtp import SmtpSend
        except ImportError as error:
            raise InvalidInput("an effect by `smtp` needs the extra: pip install 'waybook[mail]'") from error
        kept = self.journal
        journal = None
        if kept is not None:
            journal = ImapJournal(
                kept.host, kept.port, username=kept.username, password=_secret(kept.password_env),
                mailbox=kept.mailbox, is_complete=kept.is_complete, tls=kept.tls,
            )  # fmt: skip
        return SmtpSend(
            self.host,
            self.port,
            sender=self.sender,
            username=self.username,
            password=_secret(self.password_env) if self.password_env is not None else None,
            tls=self.tls,
            journal=journal,
            objects=objects,
            call_ms=round(self.call_s * 1000),
            settle_ms=round(self.settle_s * 1000),
        )


EffectSettings: TypeAlias = FileEffect | ObjectEffect | HttpEffect | SmtpEffect


def effect_adapters(settings: Mapping[str, EffectSettings], objects: Objects) -> dict[str, EffectAdapter]:
    """The adapters by the names that steps call them by. Raises InvalidInput naming the effect."""
    built = {}
    for name, one in settings.items():
        try:
            built[name] = one.build(objects)
        except InvalidInput as error:
            raise InvalidInput(f"effect {name}: {error}") from error
    return built


def _secret(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise InvalidInput(f"the environment variable {variable} is not set")
    return value

"""The owner's handling rules in a file of their own, read anew whenever it changes: no restart, and no order in which."""

import asyncio
import logging
import tomllib
from pathlib import Path
from typing import Protocol

import msgspec

from waybook.inbox.classify import HandlingRule

log = logging.getLogger(__name__)


class RuleSource(Protocol):
    """Where the owner's handling rules come from. Whatever it raises is ignored: mail goes on without rules."""

    async def rules(self) -> tuple[HandlingRule, ...]:
        """The rules as they stand."""
        ...


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: tuple[HandlingRule, ...] = ()


class RuleFile:
    """A TOML file of tables `[[rule]]`. While it cannot be read, the rules that were read last stand."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._rules: tuple[HandlingRule, ...] = ()

    async def rules(self) -> tuple[HandlingRule, ...]:
        """See RuleSource."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> tuple[HandlingRule, ...]:
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                table = tomllib.loads(self._path.read_text(encoding="utf-8"))
                self._rules = msgspec.convert(table, _File).rule
                self._stamp = stamp
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            extra = {"action": "owner_rules_unreadable", "path": str(self._path), "error": str(error)}
            log.warning("the owner's rules cannot be read; those that were read last stand", extra=extra)
        return self._rules


async def standing(source: RuleSource | None, given: tuple[HandlingRule, ...]) -> tuple[HandlingRule, ...]:
    """`given` and what the source holds; a source that fails brings nothing (pipeline-spec 7.3: errors are ignored)."""
    if source is None:
        return given
    try:
        return (*given, *await source.rules())
    except Exception as error:  # noqa: BLE001 - whatever it raises, the mail goes on
        extra = {"action": "owner_rules_unreadable", "error": f"{type(error).__name__}: {error}"}
        log.warning("the owner's rules cannot be read; mail goes on without them", extra=extra)
        return given

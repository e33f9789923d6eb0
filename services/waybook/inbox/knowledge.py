"""The `Knowledge` port: where context_retrieval gets what is known beside the mail itself.

Scope is the sender and the organisation as a whole; a source never answers with another contact's data.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Contact(msgspec.Struct, frozen=True):
    """Who wrote, as the organisation knows them. `line` is the one line that stands in the context."""

    id: str
    name: str
    line: str = ""

    def __str__(self) -> str:
        return self.line or self.name


class ThreadMessage(msgspec.Struct, frozen=True):
    """An earlier message of the thread, `ours` when we wrote it. `at` is in milliseconds since the epoch, UTC."""

    id: str
    text: str
    author: str = ""
    at: int | None = None
    ours: bool = False


class Passage(msgspec.Struct, frozen=True):
    """A passage of knowledge or a file. `score` is 0 to 1; `curated` ones stand first, `superseded` ones are marked."""

    id: str
    text: str
    score: float = 0.0
    contact: str | None = None
    curated: bool = False
    superseded: bool = False


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, for whom. Without a contact only what belongs to the organisation as a whole may be found.

    `sender` is the author's address; empty when there is none, or when our receivers do not vouch for it.
    """

    text: str
    contact: Contact | None = None
    sender: str = ""
    thread: str | None = None
    run: str | None = None


class Knowledge(Protocol):
    """A source of context. Every method answers best first, at most `limit`; nothing found is an empty answer.

    Raises PortError when the source is away.
    """

    async def contact(self, sender: str) -> Contact | None: ...
    async def activities(self, query: Query, limit: int) -> Sequence[str]: ...
    async def commitments(self, query: Query, limit: int) -> Sequence[str]: ...
    async def facts(self, query: Query, limit: int) -> Sequence[str]: ...
    async def thread(self, query: Query, limit: int) -> Sequence[ThreadMessage]: ...
    async def passages(self, query: Query, limit: int) -> Sequence[Passage]: ...
    async def files(self, query: Query, limit: int) -> Sequence[Passage]: ...


class NoKnowledge:
    """Knows nothing; the base of sources that know one kind of thing only."""

    async def contact(self, sender: str) -> Contact | None:
        return None

    async def activities(self, query: Query, limit: int) -> Sequence[str]:
        return ()

    async def commitments(self, query: Query, limit: int) -> Sequence[str]:
        return ()

    async def facts(self, query: Query, limit: int) -> Sequence[str]:
        return ()

    async def thread(self, query: Query, limit: int) -> Sequence[ThreadMessage]:
        return ()

    async def passages(self, query: Query, limit: int) -> Sequence[Passage]:
        return ()

    async def files(self, query: Query, limit: int) -> Sequence[Passage]:
        return ()


class MemoryKnowledge(NoKnowledge):
    """A source held in memory, for tests and for programs that bring their own data.

    Facts, commitments and activities are by contact id. A passage with a `contact` is found for that contact only.
    """

    def __init__(
        self,
        *,
        contacts: Mapping[str, Contact] | None = None,
        activities: Mapping[str, Sequence[str]] | None = None,
        commitments: Mapping[str, Sequence[str]] | None = None,
        facts: Mapping[str, Sequence[str]] | None = None,
        threads: Mapping[str, Sequence[ThreadMessage]] | None = None,
        passages: Sequence[Passage] = (),
        files: Sequence[Passage] = (),
    ) -> None:
        self._contacts = {k.lower(): v for k, v in (contacts or {}).items()}
        self._by_contact = {"activities": activities or {}, "commitments": commitments or {}, "facts": facts or {}}
        self._threads = threads or {}
        self._passages, self._files = passages, files

    async def contact(self, sender: str) -> Contact | None:
        return self._contacts.get(sender.lower())

    async def activities(self, query: Query, limit: int) -> Sequence[str]:
        return self._of("activities", query, limit)

    async def commitments(self, query: Query, limit: int) -> Sequence[str]:
        return self._of("commitments", query, limit)

    async def facts(self, query: Query, limit: int) -> Sequence[str]:
        return self._of("facts", query, limit)

    async def thread(self, query: Query, limit: int) -> Sequence[ThreadMessage]:
        return tuple(m for m in self._threads.get(query.thread or "", ()) if m.id != query.run)[-limit:]

    async def passages(self, query: Query, limit: int) -> Sequence[Passage]:
        return in_scope(self._passages, query)[:limit]

    async def files(self, query: Query, limit: int) -> Sequence[Passage]:
        return in_scope(self._files, query)[:limit]

    def _of(self, kind: str, query: Query, limit: int) -> Sequence[str]:
        return tuple(self._by_contact[kind].get(query.contact.id, ()))[:limit] if query.contact else ()


class CombinedKnowledge:
    """Several sources asked in order; of contacts the first known one counts."""

    def __init__(self, *sources: Knowledge) -> None:
        self._sources = sources

    async def contact(self, sender: str) -> Contact | None:
        for source in self._sources:
            if found := await source.contact(sender):
                return found
        return None

    async def activities(self, query: Query, limit: int) -> Sequence[str]:
        return [line for s in self._sources for line in await s.activities(query, limit)][:limit]

    async def commitments(self, query: Query, limit: int) -> Sequence[str]:
        return [line for s in self._sources for line in await s.commitments(query, limit)][:limit]

    async def facts(self, query: Query, limit: int) -> Sequence[str]:
        return [line for s in self._sources for line in await s.facts(query, limit)][:limit]

    async def thread(self, query: Query, limit: int) -> Sequence[ThreadMessage]:
        found = [m for s in self._sources for m in await s.thread(query, limit)]
        return sorted(found, key=lambda m: m.at or 0)[-limit:]

    async def passages(self, query: Query, limit: int) -> Sequence[Passage]:
        found = [p for s in self._sources for p in await s.passages(query, limit)]
        return sorted(found, key=lambda p: (not p.curated, -p.score))[:limit]

    async def files(self, query: Query, limit: int) -> Sequence[Passage]:
        found = [p for s in self._sources for p in await s.files(query, limit)]
        return sorted(found, key=lambda p: -p.score)[:limit]


def in_scope(passages: Sequence[Passage], query: Query) -> list[Passage]:
    """The passages that may be shown for `query`: the organisation's and the contact's own, curated ones first."""
    mine = query.contact.id if query.contact else None
    return sorted((p for p in passages if p.contact is None or p.contact == mine), key=lambda p: not p.curated)

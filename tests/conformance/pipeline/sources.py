"""Scripted retrieval sources: an adapter of the product's Knowledge port that holds what a case gives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance.pipeline.messages import DEFAULTS

from waybook.inbox.context import Found, assemble
from waybook.inbox.knowledge import Contact, NoKnowledge, Passage, Query, ThreadMessage, in_scope

MEMBERS = frozenset({"knowledge", "facts", "commitments", "files", "thread_messages", "hits", "assembled_tokens"})
"""Members of `given` that are read here."""

FILLER = "An earlier line of this conversation. "


class ScriptedKnowledge(NoKnowledge):
    """Answers from the case; `searches` notes which sources were asked, in order. `current` is the text of the mail."""

    def __init__(self, given: Mapping[str, Any], current: Callable[[], str]) -> None:
        self._current = current
        self.searches: list[str] = []
        self._given = given
        self._hits: Mapping[str, Any] = given.get("hits") or {}
        message = given.get("message") or {}
        self._contact = message.get("contact", DEFAULTS["contact"])

    async def contact(self, sender: str) -> Contact | None:
        if self._contact is None or self._hits.get("contact") is False:
            return None
        return Contact(id=self._contact, name=self._contact)

    async def commitments(self, query: Query, limit: int) -> Sequence[str]:
        return self._lines("commitments", query, limit)

    async def facts(self, query: Query, limit: int) -> Sequence[str]:
        return self._lines("facts", query, limit)

    def _lines(self, kind: str, query: Query, limit: int) -> Sequence[str]:
        return [p.text for p in in_scope(self._passages(kind), query)][:limit]

    async def passages(self, query: Query, limit: int) -> Sequence[Passage]:
        self.searches.append("knowledge")
        return in_scope(self._passages("knowledge"), query)[:limit]

    async def files(self, query: Query, limit: int) -> Sequence[Passage]:
        self.searches.append("files")
        return in_scope(self._passages("files"), query)[:limit]

    def _passages(self, kind: str) -> list[Passage]:
        entries = self._given.get(kind)
        if entries is None:
            count = int(self._hits.get(kind) or 0)
            entries = [f"{kind} entry {number}" for number in range(1, count + 1)]
        return [_passage(kind, number, entry) for number, entry in enumerate(entries, 1)]

    async def thread(self, query: Query, limit: int) -> Sequence[ThreadMessage]:
        messages = self._given.get("thread_messages")
        if messages is None:
            messages = [f"thread entry {number}" for number in range(1, int(self._hits.get("thread") or 0) + 1)]
        earlier = [_thread_message(number, one) for number, one in enumerate(messages, 1)]
        tokens = self._given.get("assembled_tokens")
        return (
            [*earlier, await self._padding(query, earlier, int(tokens))][-limit:]
            if tokens is not None
            else earlier[-limit:]
        )

    async def _padding(self, query: Query, earlier: Sequence[ThreadMessage], tokens: int) -> ThreadMessage:
        """One more earlier message, so long that the builder's own count is exactly `tokens`."""
        found = Found(
            contact=await self.contact(query.sender),
            commitments=self._lines("commitments", query, 20),
            facts=self._lines("facts", query, 20),
            passages=in_scope(self._passages("knowledge"), query)[:10],
            files=in_scope(self._passages("files"), query)[:3],
        )
        length = max(0, tokens * 4)
        while True:
            padding = ThreadMessage("padding", (FILLER * (length // len(FILLER) + 1))[:length])
            over = assemble(_with_thread(found, [*earlier, padding]), self._current()).tokens - tokens
            if over <= 0 or length == 0:
                return padding
            length = max(0, length - max(1, (over - 1) * 4))


def _with_thread(found: Found, thread: Sequence[ThreadMessage]) -> Found:
    return Found(
        contact=found.contact,
        commitments=found.commitments,
        facts=found.facts,
        passages=found.passages,
        files=found.files,
        thread=thread,
    )


def _passage(kind: str, number: int, entry: Any) -> Passage:
    if isinstance(entry, str):
        return Passage(id=f"{kind}-{number}", text=entry)
    text = str(entry.get("text") or entry.get("name") or "")
    wanted = int(entry.get("tokens") or 0) * 4
    if wanted:
        text = (text + " " + FILLER * (wanted // len(FILLER) + 1))[:wanted]
    return Passage(
        id=str(entry.get("id") or entry.get("name") or f"{kind}-{number}"),
        text=text,
        score=float(entry.get("score") or 0.0),
        contact=entry.get("contact"),
        superseded=bool(entry.get("superseded")),
    )


def _thread_message(number: int, entry: Any) -> ThreadMessage:
    if isinstance(entry, str):
        return ThreadMessage(f"thread-{number}", entry)
    return ThreadMessage(str(entry.get("id", f"thread-{number}")), str(entry.get("text", "")))

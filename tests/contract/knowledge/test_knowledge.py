"""What every source of the `Knowledge` port keeps to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from tests.contract.knowledge.written_mails import Written, write

from waybook.inbox.documents import FolderKnowledge
from waybook.inbox.knowledge import (
    CombinedKnowledge,
    Contact,
    Knowledge,
    MemoryKnowledge,
    Passage,
    Query,
    ThreadMessage,
)
from waybook.services.reading.earlier_mails import EarlierMails

Source = Literal["memory", "folder", "earlier mails", "combined"]
SOURCES: tuple[Source, ...] = ("memory", "folder", "earlier mails", "combined")
HERE = Query(
    text="Where is my invoice?", contact=Contact("ann", "Ann"), sender="ann@example.org", thread="t1", run="m9"
)


def _memory() -> MemoryKnowledge:
    own = {"ann": [f"ann {n}" for n in range(9)], "bob": ["secret of bob"]}
    return MemoryKnowledge(
        contacts={"ann@example.org": Contact("ann", "Ann"), "bob@example.org": Contact("bob", "Bob")},
        activities=own,
        commitments=own,
        facts=own,
        threads={"t1": [ThreadMessage(f"m{n}", f"message {n}", at=n) for n in range(10)]},
        passages=[Passage(f"p{n}", "invoice", contact="bob" if n % 2 else None) for n in range(9)],
        files=[
            Passage(f"f{n}", "invoice secret of bob" if n % 2 else "x", contact="bob" if n % 2 else None)
            for n in range(9)
        ],
    )


def _folder(path: Path) -> FolderKnowledge:
    for number in range(9):
        (path / f"{number}.txt").write_text(f"Where an invoice number {number} is", encoding="utf-8")
    return FolderKnowledge(path)


@asynccontextmanager
async def _earlier(database_url: str) -> AsyncIterator[EarlierMails]:
    own = [Written(run=f"m{n}", at=1000 * n, thread="t1" if n < 10 else f"t{n}") for n in range(20)]
    bob = [Written(run=f"b{n}", sender="bob@example.org", text="secret of bob", thread=f"t{n}") for n in range(3)]
    await write(database_url, [*own, *bob])
    async with EarlierMails.open(database_url, "main") as source:
        yield source


@pytest.fixture(params=SOURCES)
async def source(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> AsyncIterator[Knowledge]:
    """Every adapter in turn, with more in it than is asked for."""
    if request.param == "memory":
        yield _memory()
    elif request.param == "folder":
        yield _folder(tmp_path)
    else:
        async with _earlier(database_url) as earlier:
            yield (
                earlier
                if request.param == "earlier mails"
                else CombinedKnowledge(_memory(), _folder(tmp_path), earlier)
            )


async def _everything(source: Knowledge, query: Query, limit: int) -> list[list[str]]:
    passages = [await source.passages(query, limit), await source.files(query, limit)]
    lines = [await f(query, limit) for f in (source.activities, source.commitments, source.facts)]
    thread = await source.thread(query, limit)
    return [
        *([p.text for p in found] for found in passages),
        *(list(found) for found in lines),
        [m.text for m in thread],
    ]


async def test_no_answer_is_longer_than_asked_for(source: Knowledge) -> None:
    """At most `limit` of each kind."""
    answers = await _everything(source, HERE, 3)
    assert max(len(found) for found in answers) == 3


async def test_a_thread_is_told_in_its_order_and_without_the_message_that_asks(source: Knowledge) -> None:
    """The newest messages, oldest first, never the current one."""
    found = await source.thread(HERE, 5)
    assert [m.at for m in found] == sorted(m.at or 0 for m in found)
    assert HERE.run not in {m.id for m in found}


async def test_nobody_is_told_what_another_contact_has(source: Knowledge) -> None:
    """Neither a known sender, nor a stranger, nor a sender that is not vouched for."""
    strange = Query(text="secret invoice", sender="eve@example.org", thread="t1", run="e1")
    unnamed = Query(text="secret invoice", thread="t1", run="e1")
    for query in (HERE, strange, unnamed):
        assert "secret of bob" not in str(await _everything(source, query, 20))


async def test_nothing_found_is_an_empty_answer(source: Knowledge) -> None:
    """A stranger in a thread of which nothing is known."""
    nobody = Query(text="zzz", sender="eve@example.org", thread="no-such-thread", run="e1")
    assert await source.contact("eve@example.org") is None
    assert list(await source.thread(nobody, 5)) == []
    assert list(await source.activities(nobody, 5)) == []


async def test_text_that_no_database_takes_is_only_text(source: Knowledge) -> None:
    """NULs, lone surrogates and the signs of a query language."""
    odd = Query(text="a\x00b \ud800 & | ! ' :* <-> (", sender="o'x\x00@example.org", thread="t'\x00", run="r\x00")
    await _everything(source, odd, 5)

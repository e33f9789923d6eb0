"""StateLog: what every adapter keeps."""

import asyncio

import pytest
from tests.contract.ports.adapters_under_test import Ports, draft

from waybook.engine.ports import AppendConflict, CommitTooLarge
from waybook.events.headers import COMMIT


async def test_a_commit_is_read_back_as_it_was_stored(ports: Ports) -> None:
    first = draft("r1", 0)
    sequence = await ports.log.append(first)
    [record] = [r async for r in ports.log.history(first.subject)]
    assert (record.subject, record.sequence, record.payload) == (first.subject, sequence, first.payload)
    assert record.headers[COMMIT] == first.commit
    assert record.stored_at > 1_700_000_000_000


async def test_a_commit_is_appended_only_behind_the_one_it_names(ports: Ports) -> None:
    first = await ports.log.append(draft("r1", 0))
    with pytest.raises(AppendConflict):
        await ports.log.append(draft("r1", 0, "other"))
    second = await ports.log.append(draft("r1", first, "other"))
    with pytest.raises(AppendConflict):
        await ports.log.append(draft("r1", first, "late"))
    assert [r.sequence async for r in ports.log.history(draft("r1", 0).subject)] == [first, second]


async def test_the_same_commit_sent_again_is_found_stored(ports: Ports) -> None:
    first = await ports.log.append(draft("r1", 0))
    await ports.log.append(draft("r1", first, "next"))
    assert await ports.log.append(draft("r1", 0)) == first


async def test_a_commit_behind_a_sequence_that_never_was_is_a_conflict(ports: Ports) -> None:
    await ports.log.append(draft("r1", 0))
    with pytest.raises(AppendConflict):
        await ports.log.append(draft("r1", 99, "ahead"))


async def test_many_at_once_are_stored_without_a_gap_and_each_run_keeps_its_order(ports: Ports) -> None:
    async def walk(run: str) -> list[int]:
        sequences = [0]
        for i in range(5):
            sequences.append(await ports.log.append(draft(run, sequences[-1], str(i))))
        return sequences[1:]

    walks = await asyncio.gather(*(walk(f"r{i}") for i in range(60)))
    assert sorted(s for walk_ in walks for s in walk_) == list(range(1, 301))
    for i, sequences in enumerate(walks):
        assert [r.sequence async for r in ports.log.history(draft(f"r{i}", 0).subject)] == sequences


async def test_one_stale_member_of_a_group_conflicts_and_the_innocent_are_stored(ports: Ports) -> None:
    await ports.log.append(draft("stale", 0))
    group = [draft(f"r{i}", 0) for i in range(30)] + [draft("stale", 0, "second")]
    results = await asyncio.gather(*(ports.log.append(d) for d in group), return_exceptions=True)
    assert isinstance(results[-1], AppendConflict)
    assert sorted(r for r in results if isinstance(r, int)) == list(range(2, 32))


async def test_of_two_commits_for_one_place_one_is_stored(ports: Ports) -> None:
    others = [draft(f"r{i}", 0) for i in range(10)]
    group = [draft("r", 0, "a"), *others, draft("r", 0, "b")]
    results = await asyncio.gather(*(ports.log.append(d) for d in group), return_exceptions=True)
    assert sum(isinstance(r, AppendConflict) for r in results) == 1
    assert sum(isinstance(r, int) for r in results) == 11


async def test_a_history_of_several_pages_is_whole_and_in_order(ports: Ports) -> None:
    sequence = 0
    for i in range(40):
        sequence = await ports.log.append(draft("long", sequence, str(i), size=120_000))
        await ports.log.append(draft(f"between{i}", 0))
    records = [r async for r in ports.log.history(draft("long", 0).subject)]
    assert len(records) == 40
    assert records == sorted(records, key=lambda r: r.sequence)
    after = [r.sequence async for r in ports.log.history(draft("long", 0).subject, after=records[9].sequence)]
    assert after == [r.sequence for r in records[10:]]


async def test_a_run_without_commits_has_an_empty_history_and_no_tail(ports: Ports) -> None:
    await ports.log.append(draft("other", 0))
    assert [r async for r in ports.log.history(draft("none", 0).subject)] == []
    assert await ports.log.tail(draft("none", 0).subject) is None


async def test_the_tail_is_the_last_commit(ports: Ports) -> None:
    first = await ports.log.append(draft("r1", 0))
    second = await ports.log.append(draft("r1", first, "second"))
    tail = await ports.log.tail(draft("r1", 0).subject)
    assert tail is not None
    assert (tail.sequence, tail.headers[COMMIT]) == (second, draft("r1", first, "second").commit)
    assert tail.payload == draft("r1", first, "second").payload


async def test_a_commit_over_256_kib_is_refused_and_its_largest_field_named(ports: Ports) -> None:
    await ports.log.append(draft("r1", 0, size=255_000))
    with pytest.raises(CommitTooLarge, match=r"events\[0\]\.text"):
        await ports.log.append(draft("r2", 0, size=262_144))

"""The mails themselves as knowledge: which of them, and what of them."""

import pytest
from tests.contract.knowledge.written_mails import Written, write

from waybook.engine.ports import PortError
from waybook.inbox.knowledge import Query
from waybook.services.reading.earlier_mails import EarlierMails
from waybook.testing.servers import ServerUnderTest

REPLY = Query(text="Any news about the delivery?", sender="Ann@example.org", thread="t1", run="now")


async def test_a_thread_holds_the_senders_own_words_and_what_we_answered(database_url: str) -> None:
    """Quoted words are left out, and so is whoever else wrote in the thread."""
    quoting = "It was number 7.\n\nOn Mon, 2 Mar 2026, Shop wrote:\n> Which invoice?\n"
    mails = [
        Written(run="m1", at=1000, reply="Which invoice?"),
        Written(run="m2", at=2000, text=quoting),
        Written(run="m3", at=3000, sender="Eve <eve@example.org>", text="Tell me all."),
        Written(run="m4", at=4000, tenant="other", text="Of another tenant."),
        Written(run="m5", at=5000, sender="ann@example.org <eve@example.org>", text="In her name."),
    ]
    await write(database_url, mails)
    async with EarlierMails.open(database_url, "main") as source:
        found = await source.thread(REPLY, 5)
    expected = [("Where is my invoice?", False), ("Which invoice?", True), ("It was number 7.", False)]
    assert [(m.text, m.ours) for m in found] == expected


async def test_what_the_scan_did_not_let_pass_is_no_context(database_url: str) -> None:
    """Neither quarantined mails nor released ones, nor those with a sender whom our receivers do not vouch for."""
    mails = [
        Written(run="m1", text=None),
        Written(run="m2", released=True, text="Released."),
        Written(run="m3", flags={"sender_verification": "unverified"}, text="Forged."),
        Written(run="m4", flags={"sender_verification": "verified"}, text="Vouched for."),
    ]
    await write(database_url, mails)
    async with EarlierMails.open(database_url, "main") as source:
        assert [m.text for m in await source.thread(REPLY, 5)] == ["Vouched for."]
        elsewhere = Query(text="x", sender="ann@example.org", thread="t2", run="now")
        assert len(await source.activities(elsewhere, 5)) == 1


async def test_of_other_threads_the_mail_that_shares_most_words_comes_first(database_url: str) -> None:
    """Each in one line with its day and subject."""
    mails = [
        Written(run="m1", thread="t2", subject="Delivery", text="When does the delivery of my chair come?"),
        Written(run="m2", thread="t3", subject="Opening hours", text="Are you open on Sunday?", at=1_767_225_600_000),
    ]
    await write(database_url, mails)
    async with EarlierMails.open(database_url, "main") as source:
        found = await source.activities(REPLY, 5)
    assert found[0].startswith("2023-11-14 mail “Delivery”: When does")
    assert found[1] == "2026-01-01 mail “Opening hours”: Are you open on Sunday?"


async def test_an_author_of_any_length_can_be_stored(database_url: str) -> None:
    """An index takes no key over 2,700 bytes."""
    sender = "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(9000))
    await write(
        database_url, [Written(run="m1", sender=sender), Written(run="m2", sender=f"{sender} <ann@example.org>")]
    )
    async with EarlierMails.open(database_url, "main") as source:
        assert [m.id for m in await source.thread(REPLY, 5)] == ["m2"]


async def test_before_there_are_read_models_nothing_is_known(database_url: str) -> None:
    """The projector may come later than the first mail."""
    async with EarlierMails.open(database_url, "main") as source:
        assert list(await source.thread(REPLY, 5)) == []
        assert list(await source.activities(REPLY, 5)) == []


async def test_a_database_that_is_away_is_a_port_error_and_answers_when_it_is_back(
    own_postgres: ServerUnderTest,
) -> None:
    """So that the step waits and does not fail."""
    await write(own_postgres.url, [Written(run="m1")])
    async with EarlierMails.open(own_postgres.url, "main") as source:
        assert len(await source.thread(REPLY, 5)) == 1
        await own_postgres.stop()
        for _ in range(2):
            with pytest.raises(PortError):
                await source.thread(REPLY, 5)
        await own_postgres.start()
        assert len(await source.thread(REPLY, 5)) == 1

"""The context: what is looked up, and what survives the budget."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from waybook.agents.model import ModelAnswer, ModelRequest, ModelUnavailable
from waybook.inbox.context import Found, assemble, context_retrieval
from waybook.inbox.documents import FolderKnowledge
from waybook.inbox.knowledge import CombinedKnowledge, Contact, MemoryKnowledge, Passage, Query, ThreadMessage

ANN = Contact("A", "Ann Example", "Ann Example, customer since 2020")


def padded(tokens: int, message: str) -> Found:
    """A thread history that makes the context exactly `tokens` long."""
    length = 4 * tokens - len(assemble(Found(thread=(ThreadMessage("t", ""),)), message).text)
    return Found(thread=(ThreadMessage("t", "x" * length),))


@pytest.mark.parametrize(
    ("tokens", "tier"), [(4000, "normal"), (4001, "compacted"), (12000, "compacted"), (12001, "emergency")]
)
def test_the_tier_follows_the_length(tokens: int, tier: str) -> None:
    """Four characters a token; the current message stays in every tier."""
    context = assemble(padded(tokens, "MARK-CURRENT where is my parcel?"), "MARK-CURRENT where is my parcel?")
    assert (context.tokens, context.tier) == (tokens, tier)
    assert "MARK-CURRENT" in context.text[context.message_start :]
    assert tier == "normal" or len(context.text) <= 16000


def test_an_emergency_keeps_the_bare_necessities() -> None:
    """Contact, three commitments, three facts, and 4,000 characters of the message."""
    found = Found(
        contact=ANN,
        facts=[f"fact {n} of eight {'y' * 400}" for n in range(1, 9)],
        commitments=[f"commitment {n} of five" for n in range(1, 6)],
        thread=padded(12500, "").thread,
    )
    context = assemble(found, "z" * 6000)
    assert context.tier == "emergency"
    for kept in ("Ann Example", "commitment 3 of", "fact 3 of", "z" * 4000):
        assert kept in context.text
    assert "commitment 4 of" not in context.text and "fact 4 of" not in context.text


def test_a_cut_source_is_not_claimed() -> None:
    """Only passages whose text survived whole."""
    passages = (Passage("cut off", "o" * 20_000), Passage("kept", "n" * 1200))
    context = assemble(Found(passages=passages), "m" * 13_600)
    assert (context.tier, context.grounding_sources) == ("compacted", ("kept",))


async def test_another_contacts_data_is_never_shown() -> None:
    """Without a contact only the organisation's own passages."""
    source = MemoryKnowledge(
        contacts={"ann@x.example": ANN},
        facts={"A": ["Ann likes tea"]},
        passages=[Passage("1", "fact A", contact="A"), Passage("2", "policy"), Passage("3", "fact B", contact="B")],
    )
    unknown = await context_retrieval(
        source, sender="eve@x.example", subject="Hello", text="What is known?", thread=None, run="r"
    )
    assert "policy" in unknown.text and "fact A" not in unknown.text and not unknown.coverage.contact
    known = await context_retrieval(
        source, sender="Ann@X.example", subject="Hello", text="What is known?", thread=None, run="r"
    )
    assert "fact A" in known.text and "fact B" not in known.text and "Ann likes tea" in known.text


async def test_a_thread_alone_is_coverage_and_short_mails_are_not_searched_for() -> None:
    """The run's own message is left out of its thread."""
    threads = {"t": [ThreadMessage("a", "before"), ThreadMessage("r", "myself")]}
    source = MemoryKnowledge(threads=threads, passages=[Passage("1", "policy")])
    context = await context_retrieval(source, sender="", subject="", text="Hi", thread="t", run="r")
    assert "before" in context.text and "myself" not in context.text and "policy" not in context.text
    assert context.coverage.thread and not context.coverage.low_coverage and context.searches == ()


class _Extraction:
    name = "x"

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        if isinstance(self._answer, Exception):
            raise self._answer
        return ModelAnswer(model="x", data=self._answer)

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelAnswer]:
        raise NotImplementedError


async def test_an_extraction_that_fails_leaves_the_message_itself() -> None:
    """One that works stands before it."""
    for answer in (ModelUnavailable("gone"), {"facts": 5}):
        context = await context_retrieval(
            MemoryKnowledge(),
            sender="",
            subject="",
            text="Please send the invoice",
            thread=None,
            run="r",
            extraction=_Extraction(answer),
        )
        assert "Please send the invoice" in context.text and context.model is None
    good = _Extraction({"facts": ["invoice wanted"], "questions": []})
    context = await context_retrieval(
        MemoryKnowledge(), sender="", subject="", text="Send it", thread=None, run="r", extraction=good
    )
    assert "- invoice wanted" in context.text and context.model == "x"


async def test_a_folder_finds_the_passage_and_sees_changes(tmp_path: Path) -> None:
    """Scored from 0 to 1, best first, in scripts without blanks too."""
    (tmp_path / "refunds.md").write_text("A refund takes three working days.\n\nIt goes to the card that was charged.")
    (tmp_path / "hours.txt").write_text("The shop opens at nine.")
    (tmp_path / "ja.txt").write_text("返金には三日かかります。")
    (tmp_path / "image.png").write_bytes(b"\0")
    source = FolderKnowledge(tmp_path)
    found = await source.passages(Query(text="When does my refund arrive on the card?"), 2)
    assert found[0].id == "refunds.md" and 0 < found[0].score <= 1
    assert (await source.passages(Query(text="返金はいつですか"), 1))[0].id == "ja.txt"
    assert await source.passages(Query(text="zebra"), 1) == []
    (tmp_path / "zebra.md").write_text("The zebra ships in spring.")
    assert (await source.passages(Query(text="zebra"), 1))[0].id == "zebra.md"
    both = CombinedKnowledge(source, MemoryKnowledge(passages=[Passage("c", "curated", curated=True)]))
    assert (await both.passages(Query(text="zebra"), 5))[0].id == "c"

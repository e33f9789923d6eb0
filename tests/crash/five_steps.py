"""A five-step agent under the lifecycle of `inbox` whose bodies do nothing but say that they run."""

import asyncio
import os
from pathlib import Path
from typing import ClassVar

import msgspec

from waybook.agents.agent import Agent
from waybook.agents.context import StepContext
from waybook.agents.step import step
from waybook.engine.definition import Table
from waybook.events.typed import StartEvent
from waybook.inbox.classify import Classification, Intent
from waybook.inbox.context import Context, Coverage
from waybook.inbox.draft import Draft
from waybook.inbox.events import (
    ContextRetrieved,
    DraftProposed,
    MailClassified,
    ReviewRequested,
    ScanPassed,
)
from waybook.inbox.route import Routed
from waybook.inbox.scan.findings import SecurityFlags
from waybook.inbox.table import TABLE
from waybook.testing.faults import Faults

STEPS = ("security_scan", "context_retrieval", "classify", "draft", "route")
GATE_S = 0.01

# E1 keeps what is in a mail, the E2 rows archive automated ones: all read what these mails do not have.
FIVE_STEPS_TABLE = msgspec.structs.replace(
    TABLE,
    rows=tuple(
        msgspec.structs.replace(row, fields=None) if row.name == "E1" else row
        for row in TABLE.rows
        if not row.name.startswith("E2")
    ),
)


class MailReceived(StartEvent, frozen=True, kw_only=True):
    """A mail of which nothing but the subject is known."""

    subject: str


class Deadly(msgspec.Struct, frozen=True):
    """A run whose body of `step` ends its process, once so many bodies of that step have begun."""

    run: str
    step: str
    beside: int = 1
    code: int = 13


class Journal:
    """Every body writes a line at its begin and at its end, with execution, attempt and process.

    While the file `gate` names exists, its step's bodies wait after their first line.
    """

    def __init__(self, file: Path, faults: Faults, gates: Path | None = None, deadly: Deadly | None = None) -> None:
        self._file = file
        self._faults = faults
        self._gates = gates
        self._deadly = deadly

    async def body(self, context: StepContext) -> None:
        """What a step does."""
        await self._faults.reached("step.begun", context.step)
        self._write("begun", context)
        await self._faults.reached("step.running", context.step)
        if (deadly := self._deadly) is not None and (context.key.run, context.step) == (deadly.run, deadly.step):
            while self._begun(deadly.step) < deadly.beside:  # noqa: ASYNC110 - they write lines
                await asyncio.sleep(GATE_S)
            os._exit(deadly.code)
        while self._gates is not None and (self._gates / context.step).exists():  # noqa: ASYNC110 - others remove it
            await asyncio.sleep(GATE_S)
        self._write("ended", context)
        await self._faults.reached("step.ended", context.step)

    def _begun(self, step: str) -> int:
        lines = self._file.read_text().splitlines()
        return sum(line.startswith("begun ") and f":{step}:" in line for line in lines)

    def _write(self, word: str, context: StepContext) -> None:
        line = f"{word} {context.execution} {context.attempt} {os.getpid()}\n"
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class FiveSteps(Agent):
    """The steps of `inbox`, without their work."""

    name: ClassVar[str] = "inbox"
    table: ClassVar[Table] = FIVE_STEPS_TABLE

    @step
    async def security_scan(self, mail: MailReceived, context: StepContext, journal: Journal) -> ScanPassed:
        """Finds nothing."""
        await journal.body(context)
        return ScanPassed(flags=SecurityFlags(), text="")

    @step
    async def context_retrieval(self, passed: ScanPassed, context: StepContext, journal: Journal) -> ContextRetrieved:
        """Knows nothing."""
        await journal.body(context)
        return ContextRetrieved(context=Context(text="", tier="normal", tokens=0, coverage=Coverage()))

    @step
    async def classify(self, known: ContextRetrieved, context: StepContext, journal: Journal) -> MailClassified:
        """Takes every mail for a question."""
        await journal.body(context)
        return MailClassified(classification=_question())

    @step
    async def draft(self, classified: MailClassified, context: StepContext, journal: Journal) -> DraftProposed:
        """Answers nothing."""
        await journal.body(context)
        return DraftProposed(draft=Draft(text="", subject=""), classification=_question())

    @step
    async def route(self, draft: DraftProposed, context: StepContext, journal: Journal) -> ReviewRequested:
        """Leaves it to a person."""
        await journal.body(context)
        return ReviewRequested(routed=Routed(decision="human_review", reason="a person decides"))


class SixSteps(FiveSteps):
    """Another version, which has a step more and so cannot continue the runs of FiveSteps."""

    name: ClassVar[str] = "inbox"

    @step
    async def weigh(self, mail: MailReceived, context: StepContext, journal: Journal) -> None:
        """Finds nothing either."""
        await journal.body(context)


def _question() -> Classification:
    intent = Intent(category="support", priority="normal", sentiment="neutral", intent="question", confidence=1.0)
    return Classification(intents=(intent,))

"""An agent that writes a report, has people approve it, and sends it; its bodies do nothing but say that they run."""

from typing import ClassVar

from tests.crash.five_steps import Journal

from waybook.agents import Agent, Approvals, DecisionEvent, Event, StartEvent, StepContext, StopEvent, step

PERSON = "ann"


class ReportWanted(StartEvent, frozen=True, kw_only=True):
    """Somebody wants a report."""

    subject: str


class ReportWritten(Event, frozen=True, kw_only=True):
    """The report."""

    text: str


class ReportDecided(DecisionEvent, frozen=True, kw_only=True):
    """A person decided on it."""

    decision: str
    by: str | None = None
    digest: str = ""


class ReportSent(StopEvent, frozen=True, kw_only=True):
    """It is out; `digest` is that of what was approved."""

    by: str | None
    digest: str


class Asking(Agent):
    """Two steps with a person between them."""

    name: ClassVar[str] = "asking"

    @step
    async def write(
        self, wanted: ReportWanted, context: StepContext, journal: Journal, approvals: Approvals
    ) -> ReportWritten:
        """Asks for the approval of what it wrote."""
        await journal.body(context)
        approvals.request("send", resource="mailto:board", params={"text": wanted.subject}, answer=ReportDecided)
        return ReportWritten(text=wanted.subject)

    @step
    async def send(
        self, decided: ReportDecided, report: ReportWritten, context: StepContext, journal: Journal
    ) -> ReportSent:
        """Begins with the decision, in whatever process takes it up."""
        await journal.body(context)
        return ReportSent(by=decided.by, digest=decided.digest)

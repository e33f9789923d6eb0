"""The steps. Each does one thing, and hands on what came of it as an event."""

from hashlib import sha256
from typing import ClassVar

from samples.agents.reporting.events import (
    ApprovalLapsed,
    EmailSent,
    QueryCompleted,
    ReportApproved,
    ReportAsked,
    ReportExpired,
    ReportGenerated,
    ReportRejected,
    ReportRevised,
)
from samples.agents.reporting.figures import Figures
from samples.agents.reporting.mail import EFFECT, mail_of
from samples.agents.reporting.table import TABLE

from waybook.agents import Agent, Effects, Table, precondition, step
from waybook.agents.effects import EffectRefused
from waybook.engine.digest import canonical_digest
from waybook.engine.ports import Objects


@precondition
def is_for(approved: ReportApproved, report: ReportGenerated) -> bool:
    """Whether the newest approval is one of the newest report."""
    return approved.digest == canonical_digest(mail_of(report))


class Reporting(Agent):
    """Query, report, a person's word, mail."""

    name: ClassVar[str] = "reporting"
    table: ClassVar[Table] = TABLE
    accepts: ClassVar[tuple[type, ...]] = (ReportRejected, ReportExpired)
    uses: ClassVar[tuple[type, ...]] = (Figures, Objects)

    @step
    async def query(self, asked: ReportAsked, figures: Figures) -> QueryCompleted:
        """Reads, and changes nothing: a repetition costs time only."""
        return QueryCompleted(figures=await figures.of(asked.topic))

    @step
    async def generate(self, asked: ReportAsked, found: QueryCompleted, objects: Objects) -> ReportGenerated:
        """Makes the report."""
        return await _stored(asked, found, None, objects)

    @step
    async def revise(
        self, asked: ReportAsked, found: QueryCompleted, revised: ReportRevised, objects: Objects
    ) -> ReportGenerated:
        """Makes another report, which has to be approved like the first."""
        return await _stored(asked, found, revised.remark, objects)

    @step(precondition=is_for)
    async def send(
        self, approved: ReportApproved, report: ReportGenerated, effects: Effects
    ) -> EmailSent | ApprovalLapsed:
        """Sends what was approved, once. The engine compares the mail with the approval before anything leaves."""
        try:
            receipt = await effects.run(EFFECT, mail_of(report), key="report", approval=approved.approval)
        except EffectRefused as refused:
            if refused.reason == "kill_switch":
                raise
            return ApprovalLapsed(reason=refused.reason)
        return EmailSent(message_id=receipt.evidence.get("message_id"), sha256=report.sha256)


async def _stored(asked: ReportAsked, found: QueryCompleted, remark: str | None, objects: Objects) -> ReportGenerated:
    """A report under the digest of its bytes, so that no other can take its place."""
    lines = ["name,value", *(f"{name},{value}" for name, value in sorted(found.figures.items()))]
    if remark is not None:
        lines.append(f"remark,{remark}")
    data = "\r\n".join([*lines, ""]).encode()
    digest = sha256(data).hexdigest()
    artifact = f"reports/{digest}.csv"
    await objects.put(artifact, data)
    return ReportGenerated(topic=asked.topic, recipients=asked.recipients, artifact=artifact, sha256=digest)

"""The reporting incident, replayed on real servers: a mail fails after the approval, and what was approved goes out once."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples.agents.reporting import Reporting
from samples.agents.reporting.agent import is_for
from samples.agents.reporting.events import ApprovalLapsed, EmailSent, ReportApproved, ReportGenerated
from samples.agents.reporting.mail import mail_of
from tests.contract.effects.mail_server import Fault, MailServer, mail_server
from tests.samples.reporting_office import PERSON, Office, office

from waybook.agents import Effects, step
from waybook.agents.effects import EffectRefused
from waybook.engine.digest import canonical_digest
from waybook.engine.run import Run
from waybook.events.engine import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRevoked,
    ApprovalUsed,
    OperationIntended,
    StepReused,
)
from waybook.testing.servers import NatsUnderTest


@pytest.fixture
async def here(clean_nats: NatsUnderTest, tmp_path: Path) -> AsyncIterator[Office]:
    async with mail_server(MailServer()) as mails, office(clean_nats.url, mails, tmp_path) as found:
        yield found


def report_of(run: Run) -> ReportGenerated:
    """The report that the run holds."""
    return msgspec.convert(run.fields["report"], ReportGenerated)


def result_of(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(run.log[-1].payload)
    return found


@pytest.mark.parametrize("fault", ["stalls", "451", "drop_before", "drop_after", "late"])
async def test_a_mail_that_fails_after_the_approval_goes_out_once_as_it_was_approved(
    here: Office, fault: Fault
) -> None:
    """Timed out, refused, not taken, taken and the answer lost or too late: nothing before the mail is done again."""
    here.mails.fault, here.mails.late_s = fault, 2.0
    async with here.at_work():
        key = await here.start()
        waiting = await here.until_state(key, "approval_pending")
        assert (await here.give(key, "approve")).ok
        run = await here.until_state(key, "completed")
    approved = report_of(waiting)
    assert [sha256(data).hexdigest() for data in here.attached()] == [approved.sha256]
    assert here.mails.recipients == [list(approved.recipients)]
    assert here.queries() == 1
    generated = [p for p in run.log if p.event == "ReportGenerated"]
    assert len(generated) == 1, "the report was made again"
    (asked,) = await here.events(key, ApprovalRequested)
    (decided,) = await here.events(key, ApprovalDecided)
    (used,) = await here.events(key, ApprovalUsed)
    assert isinstance(asked, ApprovalRequested) and asked.digest == canonical_digest(mail_of(approved))
    assert isinstance(decided, ApprovalDecided) and decided.by == PERSON
    intents = await here.events(key, OperationIntended)
    assert {msgspec.structs.asdict(one)["digest"] for one in intents} == {asked.digest}
    assert isinstance(used, ApprovalUsed) and result_of(run)["sha256"] == approved.sha256
    if fault in ("stalls", "451"):  # it surely did not leave, so the step failed and was tried again
        reused = [event.step for event in await here.events(key, StepReused) if isinstance(event, StepReused)]
        assert reused == ["query", "generate"]


async def test_a_report_that_is_made_anew_after_the_approval_is_approved_anew(here: Office) -> None:
    """The mail cannot leave, a person has another report made: the first approval does not cover it."""
    here.mails.refused = ASKED_FIRST
    async with here.at_work():
        key = await here.start()
        first = report_of(await here.until_state(key, "approval_pending"))
        await here.give(key, "approve")
        await here.until_state(key, "failed")
        assert (await here.signal(key, "ReportRevised", remark="of March")).ok
        second = report_of(await here.until(key, lambda run: run.state == "approval_pending" and _is_new(run, first)))
        assert second.sha256 != first.sha256 and here.mails.taken == []
        here.mails.refused = None
        await here.give(key, "approve")
        await here.until_state(key, "completed")
    assert [sha256(data).hexdigest() for data in here.attached()] == [second.sha256]
    assert len(await here.events(key, ApprovalRequested)) == 2


ASKED_FIRST = "board@example.org"


def _is_new(run: Run, first: ReportGenerated) -> bool:
    return report_of(run) != first


async def test_a_report_that_somebody_overwrote_in_the_store_does_not_leave(here: Office) -> None:
    """The approval names the bytes: others under the same name are refused, and a person is asked anew."""
    async with here.at_work():
        key = await here.start()
        first = report_of(await here.until_state(key, "approval_pending"))
        await here.installation.wiring.objects.put(first.artifact, b"name,value\r\nrevenue,1\r\n")
        await here.give(key, "approve")
        run = await here.until_state(key, "failed")
        assert "does not hold the bytes" in run.fields["error_message"]
        assert here.mails.taken == []
        await here.signal(key, "ReportRevised", remark="again")
        second = report_of(await here.until_state(key, "approval_pending"))
        await here.give(key, "approve")
        await here.until_state(key, "completed")
    assert [sha256(data).hexdigest() for data in here.attached()] == [second.sha256]


class Stretching(Reporting):
    """Sends more than what was approved."""

    @step(precondition=is_for)
    async def send(
        self, approved: ReportApproved, report: ReportGenerated, effects: Effects
    ) -> EmailSent | ApprovalLapsed:
        params = {**mail_of(report), "bcc": ["press@example.org"]}
        try:
            await effects.run("mail", params, key="report", approval=approved.approval)
        except EffectRefused as refused:
            return ApprovalLapsed(reason=refused.reason)
        return EmailSent(message_id=None, sha256=report.sha256)


async def test_a_mail_that_is_not_what_was_approved_is_refused_and_asked_anew(here: Office) -> None:
    async with here.at_work(Stretching):
        key = await here.start()
        await here.until_state(key, "approval_pending")
        await here.give(key, "approve")
        run = await here.until(key, lambda run: len(run.approvals) == 2 and run.state == "approval_pending")
    assert result_of(run) == {"reason": "changed"}
    assert here.mails.taken == [] and not run.operations
    (revoked,) = await here.events(key, ApprovalRevoked)
    assert isinstance(revoked, ApprovalRevoked) and revoked.reason == "asked_anew"


class Doubling(Reporting):
    """Sends twice under one approval."""

    @step(precondition=is_for)
    async def send(
        self, approved: ReportApproved, report: ReportGenerated, effects: Effects
    ) -> EmailSent | ApprovalLapsed:
        await effects.run("mail", mail_of(report), key="report", approval=approved.approval)
        try:
            await effects.run("mail", mail_of(report), key="again", approval=approved.approval)
        except EffectRefused as refused:
            return ApprovalLapsed(reason=refused.reason)
        return EmailSent(message_id=None, sha256=report.sha256)


async def test_an_approval_is_used_once(here: Office) -> None:
    """A second mail under the same approval does not leave."""
    async with here.at_work(Doubling):
        key = await here.start()
        await here.until_state(key, "approval_pending")
        await here.give(key, "approve")
        run = await here.until(key, lambda run: len(run.approvals) == 2 and run.state == "approval_pending")
    assert result_of(run) == {"reason": "already_used"}
    assert len(here.mails.taken) == 1

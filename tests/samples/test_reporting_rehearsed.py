"""The ways of a report that end without a mail at first: rejected, expired, revised, approved too late."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from samples.agents.reporting import Reporting
from samples.agents.reporting.events import ReportAsked, ReportRevised
from samples.agents.reporting.figures import Figures, FixedFigures
from samples.agents.reporting.table import DECIDE_WITHIN_MS

from waybook.testing.kit import OtherSide
from waybook.testing.rehearsal import Refused, Stage, rehearsal

ASKED = ReportAsked(topic="sales", recipients=("board@example.org",))


@asynccontextmanager
async def waiting() -> AsyncIterator[tuple[Stage, str, OtherSide]]:
    """A report that waits for a person."""
    side = OtherSide(evidence={"message_id": "<1@example.org>"})
    async with rehearsal(Reporting, provides={Figures: FixedFigures()}, effects={"mail": side}) as stage:
        run = await stage.start(ASKED)
        assert stage.state(run) == "approval_pending"
        yield stage, run, side


async def test_a_rejected_report_is_asked_for_again_when_a_person_retries() -> None:
    """The same report, and what was done for it stays."""
    async with waiting() as (stage, run, side):
        await stage.reject(run, reason="not today", by="ann")
        assert stage.state(run) == "failed"
        assert stage.run(run).fields["error_message"] == "rejected by ann: not today"
        await stage.retry(run)
        assert stage.state(run) == "approval_pending"
        await stage.approve(run, by="bob")
        assert (stage.state(run), side.arrived.total()) == ("completed", 1)
        assert stage.steps(run) == ["query", "generate", "send"]


async def test_a_report_that_nobody_decided_on_is_held_for_a_person() -> None:
    """A yes that comes too late is refused; a retry asks anew."""
    async with waiting() as (stage, run, side):
        await stage.pass_time(DECIDE_WITHIN_MS / 1000 + 1)
        assert stage.run(run).fields["error_message"] == "nobody decided in time"
        with pytest.raises(Refused):
            await stage.approve(run)
        assert (stage.state(run), stage.why(run).hold.reason) == ("failed", "exhausted")
        await stage.retry(run)
        await stage.approve(run)
        assert (stage.state(run), side.arrived.total()) == ("completed", 1)


async def test_a_revised_report_holds_the_remark_and_its_own_bytes() -> None:
    async with waiting() as (stage, run, side):
        first = stage.run(run).fields["report"]
        await stage.signal(run, ReportRevised(remark="of March"))
        second = stage.run(run).fields["report"]
        assert first["artifact"] != second["artifact"]
        assert b"remark,of March" in await stage.objects.get(second["artifact"])
        await stage.kill()
        await stage.approve(run)
        (sent,) = side.params.values()
        assert sent["attachments"][0]["sha256"] == second["sha256"]

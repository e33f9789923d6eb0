"""The built-in agent survives a death at every boundary, as the crash kit sees it."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.unit.inbox.several import BILLING, OPENING, Drafter, provided, received

from waybook.agents.model import ModelAnswer, ModelRequest, ModelUnavailable
from waybook.inbox.agent import Inbox
from waybook.inbox.classify import Intent
from waybook.inbox.events import MailReceived, RedraftAsked
from waybook.inbox.starting import mail_start
from waybook.services.bootstrap.mail_agent import mail_agent
from waybook.services.bootstrap.settings import Settings
from waybook.testing.kit import CrashKit, Disturbance, OtherSide, Say, approve, signal

SAMPLES = Path(__file__).parents[2] / "samples" / "mail"
ENDS = {
    "01-invoice-question.eml": "draft_ready",
    "10-hidden-orders.eml": "quarantined",
    "11-newsletter.eml": "archived",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_mail_ends_where_it_would_have_ended(name: str) -> None:
    """Killed at any boundary, a mail of each kind rests where it rests undisturbed, and no step ran twice."""
    given = mail_start((SAMPLES / name).read_bytes(), tenant="test", mailbox="inbox", received_at=1_800_000_000_000)
    start = msgspec.json.decode(given.payload.body, type=MailReceived)
    kit = CrashKit([Inbox], start=start, provides=lambda: mail_agent(Settings())[1])
    report = kit.check()
    report.expect_none()
    assert report.state == ENDS[name]


def test_an_approved_reply_leaves_once_whatever_dies() -> None:
    """Killed at any boundary of the way to `sent`, the reply leaves once, and only after it was approved."""
    mail = (SAMPLES / "01-invoice-question.eml").read_bytes()
    given = mail_start(mail, tenant="test", mailbox="inbox", received_at=1_800_000_000_000)
    start = msgspec.json.decode(given.payload.body, type=MailReceived)
    kit = CrashKit(
        [Inbox],
        start=start,
        then=[approve()],
        provides=lambda: mail_agent(Settings())[1],
        effects=lambda: {"mail": OtherSide()},
    )
    report = kit.check()
    report.expect_none()
    assert report.state == "sent"


TWO = """From: Livia <livia@cestari.example>
To: help@ours.example
Subject: Two things
Message-ID: <two@cestari.example>

When does my order 30418 arrive? The courier cannot find it.

Also, I would like an invoice for February in the name of my company.
"""


def two_intents(*then: Say) -> CrashKit:
    """A mail that asks for two things, of which each is drafted for in a branch of its own."""
    given = mail_start(TWO.encode(), tenant="test", mailbox="inbox", received_at=1_800_000_000_000)
    start = msgspec.json.decode(given.payload.body, type=MailReceived)
    provides = lambda: mail_agent(Settings())[1]
    return CrashKit([Inbox], start=start, then=then, provides=provides, effects=lambda: {"mail": OtherSide()})


def test_branches_survive_a_death_between_them() -> None:
    """Killed at any boundary, each branch is drafted once, and the join runs once."""
    report = two_intents().check()
    report.expect_none()
    assert report.state == "draft_ready"
    assert any("compose" in place for place in report.boundaries)


class Outage:
    """The drafter of one part, outside of all processes: away at the first call of each walk."""

    def __init__(self) -> None:
        self.left = 0

    def mails(self) -> dict[str, OtherSide]:
        """What is outside, made anew for a walk."""
        self.left = 1
        return {"mail": OtherSide()}

    def provided(self) -> dict[type, object]:
        """What a process is given: it has no memory of the outage."""
        return provided(Away((BILLING, OPENING), self))


class Away(Drafter):
    """A drafter that knows whether the part's model is away."""

    def __init__(self, intents: Sequence[Intent], outage: Outage) -> None:
        super().__init__(intents)
        self._outage = outage

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """As scripted. Raises ModelUnavailable during the outage."""
        if request.role == "draft" and "Write part 2" in request.instructions and self._outage.left:
            self._outage.left -= 1
            raise ModelUnavailable("the drafter of part 2 is away")
        return await super().ask(request)


def test_a_branch_that_fails_once_is_retried_alone_whatever_dies() -> None:
    """The branch that was drafted is not drafted again: every finished execution is finished once."""
    outage = Outage()
    kit = CrashKit([Inbox], start=received("Two things."), provides=outage.provided, effects=outage.mails)
    report = kit.check()
    report.expect_none()
    assert report.state == "draft_ready"


@pytest.mark.soak
@pytest.mark.parametrize(
    "disturbance",
    [Disturbance(), Disturbance(seed=3, twice=0.5), Disturbance(seed=5, late=0.4, shuffled=True)],
    ids=["calm", "twice", "late"],
)
def test_one_composed_reply_leaves_whatever_dies(disturbance: Disturbance) -> None:
    """Also where commands come twice, late and out of order."""
    report = two_intents(approve()).check(disturbance)
    report.expect_none()
    assert report.state == "sent"


@pytest.mark.soak
def test_a_part_that_is_drafted_anew_survives_a_death() -> None:
    """The new walk keeps what it kept, whatever dies between a person's word and the new draft."""
    report = two_intents(signal(RedraftAsked(by="ann", intent=2))).check()
    report.expect_none()
    assert report.state == "draft_ready"


@pytest.mark.soak
def test_four_branches_outlive_the_death_of_the_worker_that_runs_them_all() -> None:
    """One death is one failure of the step, however many branches it breaks."""
    intents = (BILLING, OPENING, BILLING, OPENING)
    kit = CrashKit([Inbox], start=received("Four things."), provides=lambda: provided(Drafter(intents)))
    report = kit.check(Disturbance(seed=11, twice=0.3, late=0.3, shuffled=True))
    report.expect_none()
    assert report.state == "draft_ready"

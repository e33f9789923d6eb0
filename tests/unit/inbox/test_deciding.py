"""Route's decision with brakes and ledgers: what is asked for, in what order, and what a silence means."""

from datetime import datetime

import msgspec
import pytest
from tests.unit.inbox.test_classify_draft_route import ON, READY

from waybook.agents.ledgers import Reservation
from waybook.inbox.brakes import StandingBrakes, Trial, WorkingHours
from waybook.inbox.compose import compose
from waybook.inbox.deciding import decide
from waybook.inbox.draft import Draft
from waybook.inbox.route import AutonomyRule, Routed, RouteSettings

MONDAY_TEN = 1_800_000_000_000 // 86_400_000 * 86_400_000 + 4 * 86_400_000 + 10 * 3_600_000


HOST = "@" + READY.sender.rpartition("@")[2]


class Counted:
    """Ledgers with so much room; what was charged, in order."""

    def __init__(self, room: int = 10, rate: int = 10) -> None:
        self.room = room
        self.rates = rate
        self.charged: list[str] = []
        self.released: list[str] = []

    async def charge(self, scope: str, *, cap: int, amount: int = 1) -> Reservation | None:
        self.charged.append(scope)
        return Reservation("@budget", scope, "e") if len(self.charged) <= min(self.room, cap) else None

    async def rate(self, address: str, *, cap: int, within_s: float) -> Reservation | None:
        self.rates -= 1
        return Reservation("@sender", address, "e") if self.rates >= 0 else None

    async def release(self, reservation: Reservation) -> None:
        self.released.append(reservation.run)


class Broken(StandingBrakes):
    """Cannot be read."""

    async def open_breaker(self) -> str | None:
        raise OSError("away")


async def decided(
    settings: RouteSettings = ON, brakes: StandingBrakes | None = None, ledgers: Counted | None = None
) -> Routed:
    return await decide(READY, settings, brakes or StandingBrakes(shadow=False), ledgers or Counted(), now=MONDAY_TEN)


async def test_where_nothing_objects_the_charge_decides() -> None:
    ledgers = Counted(room=1)
    assert (await decided(ledgers=ledgers)).decision == "auto_approve"
    refused = await decided(ledgers=ledgers)
    assert (refused.decision, refused.gate) == ("human_review", "daily_cap")


async def test_one_address_gets_so_many_replies_and_no_more() -> None:
    """A loop of two machines ends, and costs the daily cap nothing further."""
    ledgers = Counted(rate=0)
    assert (await decided(ledgers=ledgers)).gate == "sender_rate"
    assert ledgers.charged == []


@pytest.mark.parametrize(("passed", "gate"), [(1, "domain_rate"), (2, "thread_rate")])
async def test_a_machine_that_changes_its_address_with_each_mail_ends_too(passed: int, gate: str) -> None:
    """The rate of its host or of the conversation is used up; what was charged before is given back, and the cap of the
    day is not touched."""
    ledgers = Counted(rate=passed)
    said = await decide(
        msgspec.structs.replace(READY, thread="t1"), ON, StandingBrakes(shadow=False), ledgers, now=MONDAY_TEN
    )
    assert (said.decision, said.gate) == ("human_review", gate) and "it may be a machine" in said.reason
    assert ledgers.released == [READY.sender, HOST][:passed] and ledgers.charged == []


async def test_a_brake_that_cannot_be_read_objects() -> None:
    assert (await decided(brakes=Broken(shadow=False))).gate == "breaker"


async def test_shadow_mode_charges_nothing() -> None:
    ledgers = Counted()
    said = await decided(brakes=StandingBrakes(shadow=True), ledgers=ledgers)
    assert (said.decision, said.shadow, ledgers.charged) == ("human_review", True, [])


async def test_hours_that_cannot_be_read_are_ignored_and_closed_ones_object() -> None:
    closed = StandingBrakes(shadow=False, hours=WorkingHours(opens="00:00", closes="00:01"))
    odd = StandingBrakes(shadow=False, hours=WorkingHours(zone="Nowhere/At_All"))
    assert (await decided(brakes=closed)).gate == "working_hours"
    assert (await decided(brakes=odd)).decision == "auto_approve"


HOUR_MS = 3_600_000
NIGHT = WorkingHours(opens="22:00", closes="06:00", zone="Europe/Berlin", days=(4,))
LONG_DAY = WorkingHours(opens="08:00", closes="24:00", days=(0,))


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("hours", "moment", "open_"),
    [
        (NIGHT, "2026-03-27T22:00+01:00", True),  # a Friday
        (NIGHT, "2026-03-27T21:59+01:00", False),
        (NIGHT, "2026-03-28T05:59+01:00", True),
        (NIGHT, "2026-03-28T06:00+01:00", False),
        (NIGHT, "2026-03-28T23:00+01:00", False),
        (NIGHT, "2026-03-27T02:00+01:00", False),
        (LONG_DAY, "2026-03-30T23:59+00:00", True),
        (LONG_DAY, "2026-03-31T00:00+00:00", False),
        (WorkingHours(opens="00:00", closes="00:00", days=(0,)), "2026-03-30T23:59+00:00", True),
    ],
)
def test_hours_that_go_on_over_midnight_belong_to_the_day_on_which_they_opened(
    hours: WorkingHours, moment: str, open_: bool
) -> None:
    assert hours.are_open(at(moment)) is open_


@pytest.mark.parametrize(
    ("day", "opens_utc"), [("2026-03-27", 7), ("2026-03-30", 6), ("2026-10-23", 6), ("2026-10-26", 7)]
)
def test_hours_follow_the_clocks_of_their_zone(day: str, opens_utc: int) -> None:
    """Eight in Berlin is another hour in UTC from the last Sunday of March to that of October."""
    hours = WorkingHours(zone="Europe/Berlin")
    opens = at(f"{day}T{opens_utc:02}:00+00:00")
    assert (hours.are_open(opens - 1), hours.are_open(opens)) == (False, True)
    assert (hours.are_open(opens + 10 * HOUR_MS - 1), hours.are_open(opens + 10 * HOUR_MS)) == (True, False)


def test_zones_on_the_other_side_of_the_date_line_have_their_own_day() -> None:
    """Monday morning in Auckland is Sunday in London."""
    assert WorkingHours(zone="Pacific/Auckland").are_open(at("2026-06-07T21:00+00:00"))


class Known(StandingBrakes):
    """People agreed with that many decisions."""

    async def matched(self, sender: str, category: str) -> int | None:
        return 3


@pytest.mark.parametrize(
    ("rules", "known", "gate"),
    [
        ((), True, "autonomy"),
        ((AutonomyRule(category="support"),), False, "warm_up"),
        (
            (AutonomyRule(category="support"), AutonomyRule(category="support", sender=READY.sender, enabled=False)),
            True,
            "autonomy",
        ),
        ((AutonomyRule(category="support", threshold=1.0),), True, "threshold"),
        ((AutonomyRule(category="support", daily_cap=0),), True, "daily_cap"),
        ((AutonomyRule(category="support"),), True, None),
    ],
)
async def test_with_autonomy_the_rules_decide(rules: tuple[AutonomyRule, ...], known: bool, gate: str | None) -> None:
    """A sender's rule before the category's; none, a disabled one, or a first contact keep it for a person."""
    settings = msgspec.structs.replace(ON, auto_reply=False, autonomy=True, autonomy_rules=rules)
    said = await decided(settings, Known(shadow=False) if known else None)
    assert said.gate == gate


BILLING = msgspec.structs.replace(READY.classification.main, category="billing")
TWO = msgspec.structs.replace(
    READY,
    classification=msgspec.structs.replace(READY.classification, intents=(READY.classification.main, BILLING)),
)
RULES = (AutonomyRule(category="support"), AutonomyRule(category="billing"))


class Plugin(Known):
    """Objects to one category."""

    async def objection(self, sender: str, category: str) -> str | None:
        return "not about bills" if category == "billing" else None


@pytest.mark.parametrize(
    ("rules", "brakes", "gate"),
    [
        (RULES[:1], Known(shadow=False), "autonomy"),
        ((RULES[0], AutonomyRule(category="billing", threshold=1.0)), Known(shadow=False), "threshold"),
        (RULES, Plugin(shadow=False), "plugin"),
        (RULES, Known(shadow=False), None),
    ],
)
async def test_each_intent_is_asked_about_and_the_strictest_decides(
    rules: tuple[AutonomyRule, ...], brakes: StandingBrakes, gate: str | None
) -> None:
    """Rules, thresholds and plugins of every category that the message is about."""
    settings = msgspec.structs.replace(ON, auto_reply=False, autonomy=True, autonomy_rules=rules)
    ledgers = Counted()
    said = await decide(TWO, settings, brakes, ledgers, now=MONDAY_TEN)
    assert said.gate == gate
    assert ledgers.charged == ([] if gate else [rule.scope for rule in RULES])


async def test_one_reply_to_two_intents_of_a_kind_is_charged_once() -> None:
    ledgers = Counted()
    same = msgspec.structs.replace(
        TWO, classification=msgspec.structs.replace(TWO.classification, intents=(BILLING,) * 2)
    )
    assert (await decide(same, ON, StandingBrakes(shadow=False), ledgers, now=MONDAY_TEN)).decision == "auto_approve"
    assert len(ledgers.charged) == 1


async def test_what_is_spam_in_part_is_for_a_person() -> None:
    spam = msgspec.structs.replace(BILLING, category="spam")
    mixed = msgspec.structs.replace(READY.classification, intents=(READY.classification.main, spam))
    facts = msgspec.structs.replace(TWO, classification=mixed)
    said = await decide(facts, ON, StandingBrakes(shadow=False), Counted(), now=MONDAY_TEN)
    assert said.gate == "complaint_or_urgent"


async def test_a_part_without_a_draft_is_for_a_person() -> None:
    joined = compose([READY.draft, Draft(text=None, subject="s", reason="nothing to answer")])
    assert joined.text == READY.draft.text
    facts = msgspec.structs.replace(TWO, draft=joined)
    said = await decide(facts, ON, StandingBrakes(shadow=False), Counted(), now=MONDAY_TEN)
    assert (said.gate, said.reason) == ("message", "nothing to answer")


class Trying(StandingBrakes):
    """Its breaker is half-open."""

    async def trial(self, at: int) -> Trial | None:
        return Trial("trial-1", 2)


async def test_what_leaves_on_trial_is_counted_before_anything_else() -> None:
    """Two trials are allowed; the third reply is a person's, and charges nothing further."""
    ledgers = Counted()
    said = await decided(brakes=Trying(shadow=False), ledgers=ledgers)
    assert said.decision == "auto_approve" and ledgers.charged == ["trial-1", "auto-replies"]
    assert [one.run for one in said.reservations] == ["trial-1", READY.sender, HOST, "auto-replies"]
    none_left = Counted(room=0)
    said = await decided(brakes=Trying(shadow=False), ledgers=none_left)
    assert said.gate == "breaker" and none_left.charged == ["trial-1"] and none_left.rates == 10


async def test_what_was_charged_is_given_back_where_a_later_charge_objects() -> None:
    ledgers = Counted(room=0)
    said = await decided(ledgers=ledgers)
    assert said.gate == "daily_cap" and ledgers.released == [READY.sender, HOST] and said.reservations == ()


class Distrusting(StandingBrakes):
    """An earlier reply to this sender bounced."""

    async def distrust(self, sender: str, category: str) -> str | None:
        return "a reply to this sender bounced"


async def test_a_sender_whose_reply_bounced_gets_no_unattended_one() -> None:
    said = await decided(brakes=Distrusting(shadow=False))
    assert (said.gate, said.reason) == ("sender_trust", "a reply to this sender bounced")

"""The events of system aggregates: state wider than one run (`@policy`, `@grants`, `@budget...`, `@thread...`).

Their names, times and units are those of `waybook.events.engine`, which holds them among all engine events.
"""

from typing import Any, Literal

from waybook.events.fact import ContextChange, Fact


class Reserved(Fact, frozen=True, kw_only=True):
    """Of a ledger: an amount is held for an execution of a run until `expires`."""

    run: str
    execution: str
    amount: int
    expires: int


class ReservationSettled(Fact, frozen=True, kw_only=True):
    """Of a ledger: a reservation was used or released."""

    run: str
    execution: str
    outcome: Literal["used", "released"]


class ThreadJoined(Fact, frozen=True, kw_only=True):
    """Of a thread: a run belongs to it."""

    agent: str
    run: str
    message: str | None = None


class ThreadStatusSet(Fact, frozen=True, kw_only=True):
    """Of a thread: a person closes it or opens it again; a message that joins opens it by itself."""

    status: Literal["open", "resolved"]
    by: str
    reason: str | None = None


class ThreadContextChanged(Fact, frozen=True, kw_only=True):
    """Of a thread: what an execution of a run changed in its context. `name` is that of the run's own event."""

    agent: str
    run: str
    name: str
    changes: tuple[ContextChange, ...]


class PolicyChanged(Fact, frozen=True, kw_only=True):
    """Of `@policy`: new values stand; a null takes a value away."""

    values: dict[str, Any]
    by: str
    reason: str | None = None


class KillSwitchSet(Fact, frozen=True, kw_only=True):
    """Of `@policy`: sends that have not begun stop (`on`) or may go on."""

    on: bool
    by: str
    reason: str | None = None


class GrantChanged(Fact, frozen=True, kw_only=True):
    """Of `@grants`: all that a person may decide from now on; nothing: they hold no grant any more."""

    person: str
    may: tuple[str, ...]
    by: str
    reason: str | None = None


class ArrivalAdmitted(Fact, frozen=True, kw_only=True):
    """Of a sender: a message of theirs came by a live channel. Its run may begin at `begins`, at once or later.

    `full_until`: when all that came so far would be worked off at the sender's rate.
    """

    run: str
    begins: int
    full_until: int


class SenderBlockSet(Fact, frozen=True, kw_only=True):
    """Of a sender: what they send from now on is put away unread, or read again. `run`: whose mail it was about."""

    on: bool
    by: str
    reason: str | None = None
    run: str | None = None


class SenderTrustSet(Fact, frozen=True, kw_only=True):
    """Of a sender: whether replies to their mails of a category may leave without a person.

    `run`: whose reply came to a bad end, where nobody but the log says so.
    """

    category: str
    trusted: bool
    by: str
    reason: str | None = None
    run: str | None = None


class OutcomeCounted(Fact, frozen=True, kw_only=True):
    """Of the outcomes of a day: what became of a run's reply, and when."""

    kind: Literal["sent", "bounced", "complained"]
    run: str
    at: int


Verdict = Literal["approved", "edited", "rejected"]


class ReplyJudged(Fact, frozen=True, kw_only=True):
    """Of a sender, and of a category of mails: what a person made of a draft, once the answer left or was refused.

    `matched`: every gate would have let it go, and the person let it go as it stood.
    """

    category: str
    verdict: Verdict
    run: str
    at: int
    matched: bool = False


class ThresholdMoved(Fact, frozen=True, kw_only=True):
    """Of a category of mails: by how many steps its threshold stands above what the settings say, from now on."""

    level: int
    by: str
    reason: str | None = None


class Spent(Fact, frozen=True, kw_only=True):
    """Of a budget: what an attempt's model calls cost, in millionths of the unit in which prices are given.

    `estimated`: tokens of some of them were never told, and are estimated from the letters.
    """

    run: str
    action: str
    amount: int
    model: str | None = None
    estimated: bool = False

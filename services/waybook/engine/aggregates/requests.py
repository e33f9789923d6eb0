"""What may be asked of a system aggregate: small frozen types, closed by a union."""

from typing import Any, Literal

import msgspec

from waybook.events import engine as e


class Record(msgspec.Struct, frozen=True):
    """A fact is added, unless the aggregate holds it."""

    fact: e.ThreadJoined | e.ThreadContextChanged


class Admit(msgspec.Struct, frozen=True):
    """A message of a sender came by a live channel; asking again for the same run finds the first place."""

    run: str
    per_minute: int
    burst: int


class Learn(msgspec.Struct, frozen=True):
    """A fact that a run tells is added, unless the aggregate holds it."""

    fact: e.OutcomeCounted | e.SenderBlockSet | e.SenderTrustSet | e.Spent | e.ReplyJudged


class BlockSender(msgspec.Struct, frozen=True):
    """A person blocks a sender, or reads them again."""

    on: bool
    reason: str | None = None


class TrustSender(msgspec.Struct, frozen=True):
    """A person says whether replies to a sender's mails of a category may leave without a person."""

    category: str
    trusted: bool
    reason: str | None = None


class SetThreshold(msgspec.Struct, frozen=True):
    """A person says by how many steps a category's threshold stands above the settings'; 0: it is theirs again."""

    level: int
    reason: str | None = None


class SetThread(msgspec.Struct, frozen=True):
    """A person closes or opens a thread."""

    status: Literal["open", "resolved"]
    reason: str | None = None


class SetKillSwitch(msgspec.Struct, frozen=True):
    """Sends that have not begun stop, or may go on."""

    on: bool
    reason: str | None = None


class ChangePolicy(msgspec.Struct, frozen=True):
    """New values stand; None takes one away."""

    values: dict[str, Any]
    reason: str | None = None


class ChangeGrant(msgspec.Struct, frozen=True):
    """All that a person may do from now on; nothing takes every grant away."""

    person: str
    may: tuple[str, ...] = ()
    reason: str | None = None


class Reserve(msgspec.Struct, frozen=True):
    """Hold `amount` for an execution, if no more than `cap` is taken with it. It ends by itself at `expires` (ms, UTC).

    Asking again for the same execution finds the first reservation, whatever amount is asked for.
    """

    run: str
    execution: str
    cap: int
    expires: int
    amount: int = 1


class SettleReservation(msgspec.Struct, frozen=True):
    """A reservation was used, or is given back. A use is a fact: it is kept also where the reservation had ended."""

    run: str
    execution: str
    outcome: Literal["used", "released"]


Body = (
    Record
    | Admit
    | Learn
    | BlockSender
    | TrustSender
    | SetThreshold
    | SetThread
    | SetKillSwitch
    | ChangePolicy
    | ChangeGrant
    | Reserve
    | SettleReservation
)


class Asked(msgspec.Struct, frozen=True):
    """A request with who makes it. `command`: its id, when a command brought it; then it is applied once."""

    body: Body
    by: str = "engine"
    command: str | None = None
    expires_at: int | None = None
    if_version: int | None = None

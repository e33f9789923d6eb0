"""What a run asks people to approve, before it is put before them."""

from collections.abc import Mapping

import msgspec


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """An approval to ask for: this action, on this resource, with the parameters of this digest.

    `deciders` empty: whoever holds the grant for the action. `within_ms`: how long it may be decided and used, None:
    as long as it takes. `requester` is who asks: a step, or the state that has people approve. `answers`: by decision (approved, rejected, expired) the name of the event that tells the run.
    `summary` is what people read.
    """

    action: str
    resource: str
    digest: str
    requester: str = ""
    scope: str = ""
    deciders: tuple[str, ...] = ()
    within_ms: int | None = None
    answers: Mapping[str, str] = {}
    summary: str | None = None


class NoContract(msgspec.Struct, frozen=True):
    """There is nothing to approve, and why: `reason` is the stable word by which a decision is refused."""

    reason: str
    text: str

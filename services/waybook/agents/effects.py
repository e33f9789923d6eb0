"""Side effects: what a step's body asks for, and what an adapter of the other side has to offer.

A body makes a side effect through `Effects`, never by itself:

    @step
    async def send(self, approved: Approved, effects: Effects) -> Sent:
        receipt = await effects.run("mail", {"to": [approved.to], "text": approved.text}, key="reply")
        return Sent(message_id=receipt.evidence["message_id"])

The intent is stored before the call and the outcome after it, so a body that runs again meets what was done before.
"""

import time
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from waybook.events.errors import RetryableError, TerminalError, WaybookError


class Receipt(msgspec.Struct, frozen=True):
    """A side effect that surely happened. `key` is the operation's key in the run, `evidence` what the other side said.

    `changed`: it happened earlier with other parameters than those given now; those given now were not used.
    """

    key: str
    evidence: dict[str, Any]
    changed: bool = False


class Effects(Protocol):
    """Injected into a step that asks for it. Only for steps that are coroutines."""

    async def run(
        self,
        name: str,
        params: Mapping[str, Any],
        *,
        key: str | None = None,
        approval: str | None = None,
        reservation: str | None = None,
    ) -> Receipt:
        """Makes the side effect `name` once, and returns when it surely happened.

        Calls of one name count from 0 in each execution, so two alike are two; with a `key` it is one for the step, also
        over walks and resends. `params` is JSON. `approval` names the approval that covers these parameters,
        `reservation` what a ledger holds for it (`Reservation.name`); both stand in the intent, which is refused
        (EffectRefused: `reservation_gone`) when the ledger holds it no longer.

        While the outcome is unknown the body ends here, and begins anew when it is settled. Raises OperationFailed
        when it surely did not happen, EffectRefused when it may not, LeaseLost or Cancelled when the body is out of
        date, UnknownEffect when nothing provides `name`.
        """
        ...

    async def compensate(self) -> tuple[Receipt, ...]:
        """Undoes what the run has done, latest first, each as an operation of its own.

        Stops at the first that fails (OperationFailed) or is unknown (the body ends until a person has settled it);
        begun anew it goes on there.
        """
        ...


class OperationFailed(WaybookError):
    """The side effect surely did not happen. `evidence` is what the other side said."""

    def __init__(self, message: str, evidence: Mapping[str, Any], retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.evidence = dict(evidence)
        self.retry_after_ms = retry_after_ms


class OperationFailedForNow(OperationFailed, RetryableError):
    """The side effect did not happen, and may when it is tried again."""


class OperationFailedForGood(OperationFailed, TerminalError):
    """The side effect did not happen, and trying it again cannot help."""


class EffectRefused(TerminalError):
    """The side effect may not be made. `reason` is a stable word: `kill_switch`, `approval_...`, ..."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StepTimeOver(RetryableError):
    """The step's time was over before the side effect began."""


class LeaseLost(TerminalError):
    """Another worker goes on with this execution; nothing that this body does counts any more."""


class Cancelled(TerminalError):
    """The run has ended; no side effect of it begins."""


class UnknownEffect(TerminalError):
    """No adapter is provided for a side effect of that name."""


# --- adapters


class EffectCall(msgspec.Struct, frozen=True):
    """What an adapter is to do. `idempotency_key` is the same for every attempt at one operation, and for no other.

    `run` names the run, `key` the operation in it, `name` and `params` are those that the body gave. `undoes`: the key of
    the operation that this one takes back.
    """

    run: str
    key: str
    name: str
    params: Mapping[str, Any]
    idempotency_key: str
    undoes: str | None = None


class Deadline:
    """Until when a call may make its effect real, on the machine's clock since it was started.

    That clock goes on while the machine sleeps and nobody can set it.
    """

    def __init__(self, call_ms: int) -> None:
        self._end = _boot_time() + call_ms / 1000

    @property
    def remaining_s(self) -> float:
        """Seconds that are left; negative when it has passed. Sockets time out by it."""
        return self._end - _boot_time()

    def shorten(self, call_ms: int) -> None:
        """It ends in `call_ms` from now, if that is earlier."""
        self._end = min(self._end, _boot_time() + call_ms / 1000)

    def check(self) -> None:
        """To be called right before the write that makes the effect real. Raises DeadlinePassed: then do not write."""
        if self.remaining_s <= 0:
            raise DeadlinePassed


class DeadlinePassed(RetryableError):
    """The call's deadline passed before its effect was made real."""


class Done(msgspec.Struct, frozen=True):
    """It happened. `evidence` is JSON: ids that the other side gave, a receipt."""

    evidence: dict[str, Any] = {}


class NotDone(msgspec.Struct, frozen=True):
    """It surely did not happen. `retryable` False: trying again cannot help. `retry_after_ms`: not before then."""

    text: str
    evidence: dict[str, Any] = {}
    retryable: bool = True
    retry_after_ms: int | None = None


class Unsure(msgspec.Struct, frozen=True):
    """Nobody here can tell whether it happened. `again` False: asking the other side again cannot help."""

    text: str
    evidence: dict[str, Any] = {}
    again: bool = True


class NotThere(msgspec.Struct, frozen=True):
    """The other side knows of no such effect."""

    evidence: dict[str, Any] = {}


class EffectAdapter(Protocol):
    """The other side of a side effect. Whatever `call` or `undo` raises, except DeadlinePassed, counts as unsure.

    `call_ms`: how long a call may take. `settle_ms`: how long after the call's deadline it may still take effect (a
    server that works off what it has taken). `find_is_authoritative`: what `find` does not see then never happened.
    """

    @property
    def call_ms(self) -> int: ...
    @property
    def settle_ms(self) -> int: ...
    @property
    def find_is_authoritative(self) -> bool: ...

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """Makes it happen, once; `deadline.check()` stands right before the write that makes it real."""
        ...

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """Asks the other side, without changing anything, whether it happened."""
        ...

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """Takes it back; `call` is the undoing's own, with the parameters of what happened, `evidence` what came of that."""
        ...


def _boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)

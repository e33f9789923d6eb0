"""What reaches a run's decision about its side effects (DESIGN 4, "Side effects")."""

from typing import Any, Literal

import msgspec

from waybook.events.engine import OperationOutcome

CALL_MS = 30_000
"""How long a call may take by default; shorter than the lease of a command."""

UNDO = "undo:"
"""What begins the name and the key of an undoing."""

SettledBy = Literal["call", "find", "person"]


class Intend(msgspec.Struct, frozen=True):
    """A step's body is about to make a side effect; nothing is called before this is committed.

    `ordinal` counts the calls of `name` in the execution from 0, unless the author gave a `key`. `digest` is that of the
    canonical parameters, `params` what is stored of them. `call_ms`: how long the call may take from now on.
    `received_at`: when COMMANDS got the command under which the step runs (ms UTC); an approval has to hold then.
    """

    action: str
    name: str
    digest: str
    params: dict[str, Any]
    ordinal: int = 0
    key: str | None = None
    call_ms: int = CALL_MS
    approval: str | None = None
    received_at: int | None = None
    reservation: str | None = None
    undoes: str | None = None


class Settle(msgspec.Struct, frozen=True):
    """What came of an operation: a fact, or a person's word when it comes as a command.

    `intent` names the intent that it is about, None: the newest. `ask_again` False: only a person can say more.
    """

    key: str
    outcome: OperationOutcome
    by: SettledBy
    evidence: dict[str, Any] = {}
    intent: str | None = None
    ask_again: bool = True


class Park(msgspec.Struct, frozen=True):
    """A step's body waits for an operation that nobody can settle now: it ends without a result and without a failure.

    `until`: when the other side is to be asked again (ms UTC), None: a person settles it. `evidence` says what is known.
    """

    action: str
    key: str
    until: int | None
    evidence: dict[str, Any] = {}


class Renew(msgspec.Struct, frozen=True):
    """A person wants what was made under an author's key made once more, when its step runs again."""

    operation: str
    reason: str | None = None


class Compensate(msgspec.Struct, frozen=True):
    """A person has everything undone that the run has done outside, the latest first."""


Effect = Intend | Settle | Park
EFFECTS = (Intend, Settle, Park)

"""Answers of verbs, as cases write them."""

from typing import Any

from tests.conformance.pipeline.client import Asked
from tests.conformance.pipeline.product import MAILBOX, TENANT

from waybook.events.subjects import RunKey, run_id


class Pending(dict[str, Any]):
    """An outcome that is filled in when its command is answered."""

    def __init__(self, asked: Asked, *, human: bool) -> None:
        super().__init__()
        self._asked = asked
        if human:
            self["human"] = True
        self.look()

    def look(self) -> "Pending":
        """Takes the answer over, once it is there."""
        answer = self._asked.answer
        if answer is None:
            return self
        self["ok"] = answer.ok
        if answer.already:
            self["already"] = True
        if not answer.ok and answer.reason is not None:
            self["reason"] = answer.reason
        return self


def outcome(asked: Asked, *, human: bool) -> Pending:
    """The outcome of a command, pending while it is not answered."""
    return Pending(asked, human=human)


def stranger(name: str) -> RunKey:
    """The run of a message that the case has never stored."""
    return RunKey(TENANT, "inbox", run_id(TENANT, MAILBOX, f"{name}@cases.example"))

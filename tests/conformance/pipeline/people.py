"""Answers of verbs, as cases write them."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.pipeline.client import Asked
from tests.conformance.pipeline.product import MAILBOX, TENANT

from waybook.events.subjects import RunKey, run_id


class Pending(dict[str, Any]):
    """An outcome that is filled in when its command is answered."""

    def __init__(self, asked: Asked, *, human: bool, words: Mapping[str, str]) -> None:
        super().__init__()
        self._asked = asked
        self._words = words
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
            self["reason"] = self._words.get(answer.reason, answer.reason)
        return self


def outcome(asked: Asked, *, human: bool, words: Mapping[str, str] | None = None) -> Pending:
    """The outcome of a command, pending while it is not answered; `words`: the case's for the product's reasons."""
    return Pending(asked, human=human, words=words or {})


def stranger(name: str) -> RunKey:
    """The run of a message that the case has never stored."""
    return RunKey(TENANT, "inbox", run_id(TENANT, MAILBOX, f"{name}@cases.example"))

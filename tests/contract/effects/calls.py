"""Calls as the walker makes them."""

from typing import Any

from waybook.agents.effects import Deadline, DeadlinePassed, EffectCall


def call(name: str = "x", *, key: str = "k1", undoes: str | None = None, **params: Any) -> EffectCall:
    return EffectCall("t.a.r", f"1:s:1.0/{name}/0", name, params, f"waybook-{key}", undoes)


def in_time(seconds: float = 30.0) -> Deadline:
    return Deadline(round(seconds * 1000))


def too_late() -> Deadline:
    return Deadline(-1)


class PassesBeforeTheWrite(Deadline):
    """There was time enough until the moment that counts."""

    def check(self) -> None:
        raise DeadlinePassed

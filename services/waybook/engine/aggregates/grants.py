"""`@grants`: who may decide what."""

import msgspec

from waybook.engine.run import Run
from waybook.events import engine as e

ALL = "*"
DECIDE = "decide"
KILL_SWITCH = "kill-switch"
POLICY = "policy"
GRANTS = "grants"
THREAD = "thread"
SENDERS = "senders"
"""What may be granted. `decide` covers every approval, `decide:<action>` those of one action, `*` everything."""

_VERSION, _PEOPLE = "version", "people"


class Grants(msgspec.Struct, frozen=True):
    """The grants as they stand. `version` counts their changes.

    Before the first one (version 0) everybody who can give a command may do everything: an installation begins
    usable, and whoever can reach it is its owner. From then on only what is granted may be done.
    """

    version: int = 0
    people: dict[str, tuple[str, ...]] = {}

    def may(self, person: str, *words: str) -> bool:
        """Whether the person holds one of `words`, or all."""
        if self.version == 0:
            return True
        held = self.people.get(person, ())
        return ALL in held or any(word in held for word in words)

    def may_decide(self, person: str, action: str) -> bool:
        """Whether the person may decide on approvals of `action`."""
        return self.may(person, DECIDE, f"{DECIDE}:{action}")

    def holders(self, *words: str) -> tuple[str, ...]:
        """Who holds one of `words`, sorted."""
        return tuple(sorted(person for person in self.people if self.may(person, *words)))


def grants_of(run: Run | None) -> Grants:
    """The grants of a folded `@grants`; None: nothing was ever granted."""
    return Grants() if run is None else Grants(run.fields.get(_VERSION, 0), run.fields.get(_PEOPLE, {}))


def fold_change(run: Run, event: e.GrantChanged, name: str, at: int) -> None:
    people = dict(run.fields.get(_PEOPLE, {}))
    people.pop(event.person, None)
    if event.may:
        people[event.person] = event.may
    run.fields[_PEOPLE] = people
    run.fields[_VERSION] = run.fields.get(_VERSION, 0) + 1

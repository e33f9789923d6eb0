"""Who a run works for."""

import msgspec


class UserIdentity(msgspec.Struct, frozen=True):
    """Who asked for the run, as the gateway knows them. Runs that a program or a timetable began have none."""

    name: str

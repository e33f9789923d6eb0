"""What brakes unattended replies, from the settings and the log."""

from waybook.agents.prices import Prices
from waybook.engine.ports import Clock, Snapshots, StateLog
from waybook.inbox.plugins import Plugin, Plugins
from waybook.services.bootstrap.loading import load_function
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.log_brakes import LogBrakes
from waybook.services.reading.watched import Watched


def mail_brakes(
    settings: Settings, state: StateLog, clock: Clock, snapshots: Snapshots | None = None, *, plugins: bool = True
) -> LogBrakes:
    """The brakes of one process. Raises InvalidInput for a plugin that is not there; one that is off is not loaded.

    Without `plugins` they are not loaded at all: for a look.
    """
    replies = settings.replies
    named = [Plugin(one.name, load_function(one.gate)) for one in replies.plugins if one.enabled and plugins]
    return LogBrakes(
        Watched(state, clock, snapshots),
        clock,
        settings.tenant,
        settings=replies.breaker,
        budget=settings.spend.daily,
        shadow=replies.shadow,
        hours=replies.hours,
        plugins=Plugins(named),
    )


def prices(settings: Settings) -> Prices | None:
    """The owner's prices; None where none is set, so that nothing is counted."""
    return Prices(settings.spend.prices) if settings.spend.prices else None

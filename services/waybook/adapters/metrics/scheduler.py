"""What a scheduler counts, and how it stands."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

from prometheus_client.metrics_core import Metric

from waybook.adapters.metrics.cells import Distribution, Tally
from waybook.adapters.metrics.source import gauge
from waybook.engine.hooks import CommandGiven, Details, SchedulerState, TimerHandedOver, TimerRearmed, TimersArmed
from waybook.events.engine import TimerClass

LATE_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
VERBS = ("timer", "exec", "start", "answer", "cancel", "continue")


class SchedulerMetrics:
    """The hook of a scheduler, and the source of what it counted."""

    def __init__(self) -> None:
        classes = [(kind,) for kind in get_args(TimerClass)]
        self._armed = Tally("waybook_timers_armed", "Timers armed.", ("class",), classes)
        self._late = Distribution(
            "waybook_timer_late_seconds", "From a timer's due time to its command.", LATE_S, ("class",), classes
        )
        self._again = Tally(
            "waybook_timers_rearmed", "Fires that came early and were armed again.", ("class",), classes
        )
        self._given = Tally("waybook_commands_given", "Commands of the scheduler.", ("verb",), [(v,) for v in VERBS])
        self._handlers: dict[type, Callable[[Any], None]] = {
            TimersArmed: lambda told: self._armed.add((told.timer_class,)),
            TimerHandedOver: lambda told: self._late.observe(told.late_s, (told.timer_class,)),
            TimerRearmed: lambda told: self._again.add((told.timer_class,)),
            CommandGiven: lambda told: self._given.add((told.verb,)),
        }

    def __call__(self, details: Details, /) -> None:
        """See Hook."""
        handler = self._handlers.get(type(details))
        if handler is not None:
            handler(details)

    async def families(self) -> Iterable[Metric]:
        """See Source."""
        return [counted.family() for counted in (self._armed, self._late, self._again, self._given)]


class SchedulerGauges:
    """How a scheduler stands."""

    def __init__(self, state: Callable[[], SchedulerState]) -> None:
        self._state = state

    async def families(self) -> Iterable[Metric]:
        """See Source."""
        healthy = self._state().healthy
        return [gauge("waybook_scheduler_healthy", "1: the scheduler works, 0: a port does not answer.", healthy)]

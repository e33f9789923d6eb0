"""What may leave without a person, as the settings say: the table `[replies]` of `waybook.toml`."""

from typing import Annotated

import msgspec

from waybook.inbox.brakes import StandingBrakes, WorkingHours
from waybook.inbox.breaker import BreakerSettings
from waybook.inbox.route import AutonomyRule, RouteSettings

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]  # as in inbox.classify: equal types are one, by the first import
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class PluginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A gate of the owner's own: `gate` is `MODULE:FUNCTION`, or `FILE.py:FUNCTION`. One that is off is passed over."""

    name: str
    gate: str
    enabled: bool = True


class ReplySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By default a person decides on every reply.

    `unattended` lets replies leave that no gate objects to; `shadow` only notes that they would have. `threshold`: least
    confidence of the classification and least score of the draft. `daily_cap`: unattended replies a day, UTC;
    `sender_daily_cap`: to one address; `domain_hourly_cap`: to one host in an hour; `thread_cap`: in one conversation
    within 30 days. `without_guard`: also without a model that judges the incoming text. `autonomy`:
    `rules` decide instead, by category and sender. `never_to`: addresses and hosts to which nothing goes. `breaker`: when
    bounces and complaints end it. `plugins`: gates of the owner's own.
    """

    unattended: bool = False
    shadow: bool = True
    threshold: Share = 0.8
    daily_cap: Count = 100
    sender_daily_cap: Count = 5
    domain_hourly_cap: Count = 3
    thread_cap: Count = 3
    longest_thread: Count = 20
    without_guard: bool = False
    autonomy: bool = False
    rules: tuple[AutonomyRule, ...] = ()
    hours: WorkingHours | None = None
    never_to: tuple[str, ...] = ()
    breaker: BreakerSettings = BreakerSettings()
    plugins: tuple[PluginSettings, ...] = ()

    def route(self) -> RouteSettings:
        """The settings of the step that decides."""
        return RouteSettings(
            auto_reply=self.unattended,
            shadow=self.shadow,
            threshold=self.threshold,
            daily_cap=self.daily_cap,
            without_guard=self.without_guard,
            autonomy=self.autonomy and self.unattended,
            autonomy_rules=self.rules,
            sender_daily_cap=self.sender_daily_cap,
            domain_hourly_cap=self.domain_hourly_cap,
            thread_cap=self.thread_cap,
            longest_thread=self.longest_thread,
        )

    def brakes(self) -> StandingBrakes:
        """The brakes that settings alone give."""
        return StandingBrakes(shadow=self.shadow, hours=self.hours)

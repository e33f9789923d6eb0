"""What may leave without a person, as the settings say: the table `[replies]` of `waybook.toml`."""

from typing import Annotated, get_args

import msgspec

from waybook.inbox.brakes import StandingBrakes, WorkingHours
from waybook.inbox.breaker import BreakerSettings
from waybook.inbox.classify import Category
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

    def __post_init__(self) -> None:
        """What cannot be read is refused at the start: unread working hours would be no working hours."""
        if self.hours is not None:
            self.hours.check()
        for rule in self.rules:
            if rule.category not in get_args(Category):
                raise ValueError(f"there is no category {rule.category!r}; one of {', '.join(get_args(Category))}")
            if not 0 <= rule.threshold <= 1 or rule.daily_cap < 0:
                raise ValueError(f"a rule for {rule.category} needs a threshold from 0 to 1, and a cap from 0")
        shares = self.breaker.bounces, self.breaker.complaints
        if not all(0 < share <= 1 for share in shares) or self.breaker.least < 1 or self.breaker.trials < 1:
            raise ValueError("the breaker takes shares over 0, up to 1, and at least one bad end and one trial")

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

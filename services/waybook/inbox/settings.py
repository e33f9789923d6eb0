"""What the built-in agent's steps are given beside the mail."""

import msgspec

from waybook.agents.context import StepContext
from waybook.agents.model import Model
from waybook.agents.watched_model import Watch, WatchedModel
from waybook.inbox.classify import HandlingRule
from waybook.inbox.route import RouteSettings
from waybook.inbox.rule_file import RuleSource, standing
from waybook.inbox.scan.hosts import ascii_address
from waybook.inbox.scan.scan import ScanSettings

DAILY = "auto-replies"
"""The ledger that counts automatic approvals of a day."""


class Models(msgspec.Struct, frozen=True):
    """The models by role. Without a guard the deterministic layers decide, and nothing is sent unattended.

    `watch` is told of every call that a step makes.
    """

    extraction: Model
    classify: Model
    draft: Model
    self_check: Model
    guard: Model | None = None
    watch: Watch | None = None

    def of(self, context: StepContext) -> "Models":
        """The models as one execution asks them: its calls are counted on its action."""
        guard = None if self.guard is None else WatchedModel(self.guard, context, self.watch)
        return Models(
            extraction=WatchedModel(self.extraction, context, self.watch),
            classify=WatchedModel(self.classify, context, self.watch),
            draft=WatchedModel(self.draft, context, self.watch),
            self_check=WatchedModel(self.self_check, context, self.watch),
            guard=guard,
        )

    @classmethod
    def all_by(cls, model: Model, guard: Model | None = None) -> "Models":
        """One model in every role."""
        return cls(extraction=model, classify=model, draft=model, self_check=model, guard=guard)


class InboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's choices. `signature` and `tone` are trusted text for the drafter.

    `suppressed`: addresses and hosts to which nothing goes, whoever approved it. `rule_source`: where more of the owner's
    rules come from, read for every mail.
    """

    scan: ScanSettings = ScanSettings()
    route: RouteSettings = RouteSettings()
    rules: tuple[HandlingRule, ...] = ()
    signature: str = ""
    tone: str = ""
    suppressed: frozenset[str] = frozenset()
    rule_source: RuleSource | None = None

    async def standing_rules(self) -> tuple[HandlingRule, ...]:
        """The owner's rules as they stand; a source that cannot be read is passed over."""
        return await standing(self.rule_source, self.rules)

    def is_suppressed(self, address: str) -> bool:
        """Whether nothing may go to an address: it, or its host, is listed."""
        known = {ascii_address(one).lower() for one in self.suppressed}
        address = ascii_address(address).lower()
        return address in known or address.rpartition("@")[2] in known

"""What the built-in agent's steps are given beside the mail."""

import msgspec

from waybook.agents.model import Model
from waybook.inbox.classify import HandlingRule
from waybook.inbox.route import RouteSettings
from waybook.inbox.scan.scan import ScanSettings


class Models(msgspec.Struct, frozen=True):
    """The models by role. Without a guard the deterministic layers decide, and nothing is sent unattended."""

    extraction: Model
    classify: Model
    draft: Model
    self_check: Model
    guard: Model | None = None

    @classmethod
    def all_by(cls, model: Model, guard: Model | None = None) -> "Models":
        """One model in every role."""
        return cls(extraction=model, classify=model, draft=model, self_check=model, guard=guard)


class InboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's choices. `signature` and `tone` are trusted text for the drafter."""

    scan: ScanSettings = ScanSettings()
    route: RouteSettings = RouteSettings()
    rules: tuple[HandlingRule, ...] = ()
    signature: str = ""
    tone: str = ""

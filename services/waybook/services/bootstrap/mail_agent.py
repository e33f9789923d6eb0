"""The built-in agent with what its steps are given, from the settings."""

from pathlib import Path
from typing import Any

from waybook.adapters.models.rules import RulesModel
from waybook.agents.definition import AgentDefinition, define
from waybook.engine.ports import Clock
from waybook.inbox.agent import Inbox
from waybook.inbox.brakes import Brakes
from waybook.inbox.documents import FolderKnowledge
from waybook.inbox.knowledge import CombinedKnowledge, Knowledge
from waybook.inbox.rule_file import RuleFile
from waybook.inbox.scan.scan import ScanSettings
from waybook.inbox.settings import InboxSettings, Models
from waybook.services.bootstrap.clock import SystemClock
from waybook.services.bootstrap.settings import Settings


def mail_agent(
    settings: Settings, *sources: Knowledge, brakes: Brakes | None = None
) -> tuple[AgentDefinition, dict[type, Any]]:
    """The definition of `inbox` and the objects that its steps ask for by type.

    `brakes`: those that also read the log; by default those that settings alone give. Context comes from `sources` (such as `EarlierMails`) and from the folder of documents of the settings.
    """
    if settings.knowledge is not None:
        sources = (*sources, FolderKnowledge(settings.knowledge))
    scan = ScanSettings(
        own_hosts=frozenset(host.lower() for host in settings.own_hosts),
        known_hosts=frozenset(host.lower() for host in settings.known_hosts),
        receivers=frozenset(settings.receivers),
    )
    provides: dict[type, Any] = {
        Models: Models.all_by(RulesModel()),
        Knowledge: CombinedKnowledge(*sources),
        InboxSettings: InboxSettings(
            scan=scan,
            route=settings.replies.route(),
            suppressed=frozenset(settings.replies.never_to),
            rule_source=RuleFile(Path(settings.rules)) if settings.rules is not None else None,
        ),
        Brakes: brakes or settings.replies.brakes(),
        Clock: SystemClock(),
    }
    return define(Inbox).with_retry_grid(round(settings.retry_grid_s * 1000)), provides

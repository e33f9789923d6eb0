"""The built-in agent with what its steps are given, from the settings."""

from typing import Any

from waybook.adapters.models.rules import RulesModel
from waybook.agents.definition import AgentDefinition, define
from waybook.engine.ports import Clock
from waybook.inbox.agent import Inbox
from waybook.inbox.documents import FolderKnowledge
from waybook.inbox.knowledge import Knowledge, NoKnowledge
from waybook.inbox.settings import InboxSettings, Models
from waybook.services.bootstrap.clock import SystemClock
from waybook.services.bootstrap.settings import Settings


def mail_agent(settings: Settings) -> tuple[AgentDefinition, dict[type, Any]]:
    """The definition of `inbox` and the objects that its steps ask for by type."""
    knowledge = FolderKnowledge(settings.knowledge) if settings.knowledge is not None else NoKnowledge()
    provides: dict[type, Any] = {
        Models: Models.all_by(RulesModel()),
        Knowledge: knowledge,
        InboxSettings: InboxSettings(),
        Clock: SystemClock(),
    }
    return define(Inbox), provides

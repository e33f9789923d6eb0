"""What the guide to the inbox shows of the agent is the agent."""

import re
from pathlib import Path

from waybook.agents import check
from waybook.agents.mermaid import mermaid
from waybook.agents.picture import picture
from waybook.inbox.agent import Inbox

GUIDE = Path(__file__).parents[3] / "docs" / "inbox.md"


def test_the_graph_in_the_guide_is_that_of_the_agent() -> None:
    drawn = re.search(r"```mermaid\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert drawn is not None
    assert drawn.group(1) == mermaid(picture(Inbox))


def test_lint_has_nothing_to_say_about_the_shipped_agent() -> None:
    assert check(Inbox) == ()

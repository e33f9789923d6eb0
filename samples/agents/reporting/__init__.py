"""A reporting agent: queries figures, makes a report of them, has a person approve it, and mails it.

`docs/reporting.md` walks through it.
"""

from samples.agents.reporting.agent import Reporting

__all__ = ["Reporting"]

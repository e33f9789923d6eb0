"""The mail that is approved and sent: both are computed here, so they cannot differ."""

from typing import Any

from samples.agents.reporting.events import ReportGenerated

EFFECT = "mail"
"""Name of the side effect, and of what people are asked to approve."""


def mail_of(report: ReportGenerated) -> dict[str, Any]:
    """Parameters of the side effect: recipients, words, and the report by name and digest."""
    return {
        "to": list(report.recipients),
        "subject": f"Report: {report.topic}",
        "text": f"Please find attached the report on {report.topic}.",
        "attachments": [
            {
                "name": f"{report.topic}.csv",
                "type": "text/csv",
                "artifact": report.artifact,
                "sha256": report.sha256,
            }
        ],
    }

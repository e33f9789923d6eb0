"""The cells of a list of messages that say what a person should know."""

from typing import Any

import pytest

from waybook.cli.look import author, notes
from waybook.inbox.remarks import DATE_OFF

ROW: dict[str, Any] = dict.fromkeys(
    ("error_message", "automated", "archive_reason", "security_flags", "remarks", "date", "from", "answer_to")
) | {"status": "draft_ready"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ""),
        ({"error_message": "no model answers"}, "no model answers"),
        ({"archive_reason": "automated", "automated": "Precedence: bulk"}, "Precedence: bulk"),
        ({"archive_reason": "spam"}, "spam"),
        ({"remarks": [DATE_OFF], "date": "2018-01-01T10:00:00+00:00"}, "dated 2018-01-01"),
        ({"remarks": [DATE_OFF, "unknown charset 'x'", "more"]}, f"{DATE_OFF}; unknown charset 'x'"),
        (
            {
                "status": "quarantined",
                "security_flags": {
                    "findings": [
                        {"kind": "sender", "name": "punycode_host", "confidence": 0.5},
                        {"kind": "injection", "name": "override", "confidence": 0.85},
                    ]
                },
            },
            "injection: override",
        ),
        ({"security_flags": {"findings": [{"kind": "hidden", "name": "display", "confidence": 0.3}]}}, ""),
    ],
)
def test_notes_say_what_is_not_seen_from_the_state(fields: dict[str, Any], said: str) -> None:
    """What failed, why a message was put away or held, and what is odd; nothing for an ordinary one."""
    assert notes({**ROW, **fields}) == said


@pytest.mark.parametrize(
    ("sender", "answer_to", "said"),
    [
        ("Ann <ann@x.example>", "ann@x.example", "Ann"),
        ("ann@x.example", "ann@x.example", "ann@x.example"),
        ("Ann <ann@b\u00fccher.example>", "ann@xn--bcher-kva.example", "Ann <ann@b\u00fccher.example>"),
        (None, None, ""),
        ("No Address", "", "No Address"),
    ],
)
def test_a_senders_address_stands_once_unless_it_looks_different(
    sender: str | None, answer_to: str | None, said: str
) -> None:
    """Beside the address that an answer goes to."""
    assert author({**ROW, "from": sender, "answer_to": answer_to}) == said

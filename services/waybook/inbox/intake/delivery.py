"""What became of a mail that was sent from here, or in our name: delivery reports (RFC 3464), complaints (RFC 5965)."""

import re
from collections.abc import Mapping, Sequence

from waybook.inbox.intake.headers import one_line
from waybook.inbox.intake.mail import DeliveryReport

_ACTIONS = frozenset({"failed", "delayed", "delivered", "relayed", "expanded"})
_STATUS = re.compile(r"\b([245]\.\d{1,3}\.\d{1,3})\b")
_TYPE = re.compile(r"^\s*[\w-]+\s*;\s*")


def delivery_report(blocks: Sequence[Mapping[str, str]], original_id: str | None) -> DeliveryReport | None:
    """The report of the first recipient whom the blocks of a delivery-status part name; None where they name no action.

    `blocks` are its groups of fields, by lower-case name. An action that the standard does not know counts by its
    status code, so that a delay is never taken for a failure.
    """
    complaint = next((b for b in blocks if b.get("feedback-type", "").strip()), None)
    if complaint is not None:
        return _complaint(complaint, original_id)
    found = next((b for b in blocks if b.get("action", "").strip() or b.get("status", "").strip()), None)
    if found is None:
        return None
    status = _STATUS.search(found.get("status", "")) or _STATUS.search(found.get("diagnostic-code", ""))
    code = status[1] if status else ""
    word = one_line(found.get("action", "")).split(" ")[0].lower()
    recipient = _TYPE.sub("", found.get("final-recipient") or found.get("original-recipient") or "")
    return DeliveryReport(
        action=word if word in _ACTIONS else {"2": "delivered", "4": "delayed"}.get(code[:1], "failed"),
        recipient=one_line(recipient).strip("<> ")[:320],
        status=code,
        diagnostic=one_line(_TYPE.sub("", found.get("diagnostic-code", "")))[:300],
        original_id=original_id,
    )


def _complaint(block: Mapping[str, str], original_id: str | None) -> DeliveryReport | None:
    """A feedback report: somebody called the mail spam, or worse. That it is no spam after all is no complaint."""
    kind = one_line(block["feedback-type"]).strip().lower()
    if kind == "not-spam":
        return None
    recipient = block.get("original-rcpt-to") or block.get("removal-recipient") or ""
    return DeliveryReport(
        action="complained",
        recipient=one_line(recipient).strip("<> ")[:320],
        diagnostic=kind[:300],
        original_id=original_id,
    )

"""What follows from a mail outside: once each, also where the log tells of it twice."""

import msgspec
import pytest

from waybook.events import engine as e
from waybook.events.subjects import RunKey
from waybook.inbox.followups import follow_ups

KEY = RunKey("main", "inbox", "r1")


def moved(row: str, **fields: object) -> e.Transitioned:
    return e.Transitioned(row=row, from_state="a", to_state="b", on="x", fields=dict(fields))


def said(event: str, **payload: object) -> e.EventPublished:
    return e.EventPublished(event=event, schema=1, payload=msgspec.Raw(msgspec.json.encode(payload)))


def kinds(*events: e.EngineEvent) -> list[str]:
    return [one.kind for one in follow_ups(KEY, [f"7.{n}" for n in range(len(events))], events)]


DUE = {"reply": {"to": ["a@b.example"], "subject": "s", "text": "t"}}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (moved("E8", classification={"category": "support"}), ["knowledge_extraction"]),
        (moved("E8", classification={"category": "feature_request"}), ["knowledge_extraction", "code_task"]),
        (moved("E9"), ["knowledge_extraction"]),
        (moved("E11", classification={"category": "spam"}), []),
        (moved("E19"), ["timeline_mirror"]),
        (moved("E17"), ["feedback_rejected"]),
        (said("SendDue", **DUE, source="human"), ["feedback_approved"]),
        (said("SendDue", **DUE, source="human", edited=True), ["feedback_approved", "feedback_edited"]),
        (said("SendDue", **DUE, source="auto"), []),
        (said("SendDue", source="human"), []),
        (said("ReplyReturned", kind="bounced", message_id="x"), ["outcome_bounced"]),
        (said("ReplyReturned", kind="complained", message_id="x"), ["outcome_complained"]),
        (e.FieldsSet(row="E8", fields={}), []),
    ],
)
def test_what_follows_from_an_event(event: e.EngineEvent, expected: list[str]) -> None:
    assert kinds(event) == expected


def test_a_retry_that_repeats_the_way_names_the_same_thing() -> None:
    """The id is that of the mail and the kind, so a consumer that keeps ids does each once."""
    first = follow_ups(KEY, ["3.2"], [moved("E8")])
    again = follow_ups(KEY, ["9.4"], [moved("E8")])
    assert [one.id for one in first] == [one.id for one in again] == ["main.inbox.r1/knowledge_extraction"]
    assert first[0].event == "3.2"

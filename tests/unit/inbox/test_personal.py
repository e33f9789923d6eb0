"""What a store with a cipher holds of a mail: no address, no subject and no word of it in clear."""

import msgspec
from tests.unit.events.test_cipher import SUBJECT, Toy

from waybook.events import engine as e
from waybook.events.codec import GONE, Codec, FieldPlace
from waybook.events.commit import Commit
from waybook.inbox import events as ev
from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.personal import registry
from waybook.inbox.reply import Reply

SECRETS = ("ann@customer.example", "Order 4711", "where is my parcel", "the parcel is lost")


def commit() -> Commit:
    mail = parse_mail(
        b"From: Ann <ann@customer.example>\nSubject: Order 4711\nMessage-ID: <m@c.example>\n\nwhere is my parcel\n", ()
    )
    reply = Reply(to=("ann@customer.example",), subject="Re: Order 4711", text="the parcel is lost")
    returned = ev.ReplyReturned(kind="bounced", message_id="<x@y>", text="ann@customer.example is unknown")
    published = (
        ev.MailReceived(sender="Ann <ann@customer.example>", subject="Order 4711", mail=mail, received_at=1),
        ev.DraftSaved(by="bob", text="the parcel is lost", subject="Re: Order 4711"),
        ev.SendDue(reply=reply),
        returned,
    )
    known = registry()
    events: tuple[e.EngineEvent, ...] = (
        *(known.publish(one) for one in published),
        e.FieldsSet(row="save", fields={"draft_response": "the parcel is lost", "answer_to": "ann@customer.example"}),
        e.ApprovalRequested(
            action="mail", resource="mailto:ann@customer.example", scope="", digest="d", requester="inbox", deciders=(),
            expires=None, policy=0, summary="reply to ann@customer.example: Re: Order 4711",
        ),
        e.OperationIntended(key="k", name="mail", action="1.1", digest="x", params=reply.params(), deadline=1),
        e.RunTold(
            agent="inbox", run="r2", event="ReplyReturned", schema=1, body=msgspec.Raw(msgspec.json.encode(returned))
        ),
    )  # fmt: skip
    return Commit(version=1, walk=1, at=1, actor="a", definition="d", events=events)


def test_nothing_personal_is_stored_in_clear_and_all_of_it_comes_back() -> None:
    """Approvals name an address and a subject in words; they are sealed like the mail itself."""
    codec = Codec(registry(), Toy())
    stored = codec.encode(commit(), SUBJECT)
    assert [secret for secret in SECRETS if secret.encode() in stored] == []
    assert Codec().encode(codec.decode(stored, subject=SUBJECT)) == Codec().encode(commit())


def test_an_approval_whose_words_look_sealed_comes_back_as_it_was() -> None:
    asked = e.ApprovalRequested(
        action="mail", resource="@sealed:no", scope="", digest="d", requester="r", deciders=(), expires=None, policy=0
    )
    one = msgspec.structs.replace(commit(), events=(asked,))
    codec = Codec(registry(), Toy())
    stored = codec.encode(one, SUBJECT)
    assert b"@sealed:no" not in stored and codec.decode(stored, subject=SUBJECT) == one


class Forgotten(Toy):
    """Its keys are gone."""

    def decrypt(self, place: FieldPlace, text: str) -> bytes:
        return b"null"


def test_where_the_key_is_gone_an_approval_says_so() -> None:
    asked = next(event for event in commit().events if isinstance(event, e.ApprovalRequested))
    one = msgspec.structs.replace(commit(), events=(asked,))
    stored = Codec(registry(), Toy()).encode(one, SUBJECT)
    [opened] = Codec(registry(), Forgotten()).decode(stored, subject=SUBJECT).events
    assert isinstance(opened, e.ApprovalRequested) and (opened.resource, opened.summary) == (GONE, GONE)

"""New words and quoted words are kept apart."""

import pytest

from waybook.inbox.intake.quotes import split_reply

REPLIES = {
    "english": "It works.\n\nOn Mon, 2 Mar 2026, Help <help@shop.example> wrote:\n> A refund or a new parcel?",
    "danish outlook": "Tak.\n\nFra: Help <help@shop.example>\nSendt: 2. marts 2026 10:00\nTil: Dan\nEmne: Ordre 12\n\nA refund or a new parcel?",
    "german": "Danke.\n\nAm 02.03.2026 um 10:00 schrieb Help <help@shop.example>:\n\n> A refund or a new parcel?",
    "german outlook": "Danke.\n\n-----Ursprüngliche Nachricht-----\nVon: Help\nGesendet: Montag\n\nA refund or a new parcel?",
    "french, broken line": "Merci.\n\nLe lun. 2 mars 2026 à 10:00, Help\n<help@shop.example> a écrit :\n\n> A refund or a new parcel?",
    "russian": 'Спасибо.\n\n02.03.2026, 10:00, "Help" <help@shop.example>:\n> A refund or a new parcel?',
}


@pytest.mark.parametrize("text", REPLIES.values(), ids=REPLIES.keys())
def test_our_quoted_question_is_not_the_senders_word(text: str) -> None:
    """In the ways of several mail programs."""
    reply = split_reply(text)
    assert "refund" not in reply.new and "A refund or a new parcel?" in reply.quoted
    assert not reply.only_quotes


def test_an_answer_between_quoted_lines_is_new_text() -> None:
    """The lines without a mark are the sender's."""
    reply = split_reply("On Mon, Help <h@s.example> wrote:\n> Option A?\n\nYes, A.\n\n> Option B?\n\nNo.")
    assert "Yes, A." in reply.new and "No." in reply.new and "Option" not in reply.new


def test_a_reply_that_only_quotes_keeps_its_text_and_says_so() -> None:
    """Nothing is lost by stripping."""
    reply = split_reply("> A refund or a new parcel?\n")
    assert reply.only_quotes and "refund" in reply.new


def test_a_signature_is_taken_off_and_plain_mail_is_left_alone() -> None:
    """A mail without quotes is all new."""
    assert split_reply("Hello\n\n-- \nAnn").signature == "-- \nAnn"
    assert split_reply("On Friday I wrote: nothing.\nFrom: here to there it is far.").quoted == ""

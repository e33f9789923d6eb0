"""A mail that a walker refuses is named with the reason; it is neither a message nor forgotten."""

from waybook.events.command import Answer
from waybook.events.subjects import RunKey
from waybook.inbox.intake.sources import Item, Skipped
from waybook.services.intake.starts import GROUP, GROUP_BYTES, Submission, _grouped, taken_or_refused


def _submitted(path: str, *, ok: bool | None, already: bool = False) -> Submission:
    answer = None
    if ok is not None:
        answer = Answer(ok=ok, command=path, run=path, already=already, reason="invalid_input", text="it does not fit")
    return Submission(path, RunKey("t", "inbox", path), path, answer)


def test_every_mail_is_in_exactly_one_of_taken_and_left_out() -> None:
    """Refused mails join what was skipped, with what the walker said; all others stay."""
    submissions = [
        _submitted("new", ok=True),
        _submitted("known", ok=True, already=True),
        _submitted("refused", ok=False),
        _submitted("unanswered", ok=None),
    ]
    taken, left_out = taken_or_refused(submissions, [Skipped("empty", "The file is empty.")])
    assert [one.path for one in taken] == ["new", "known", "unanswered"]
    assert [one.path for one in left_out] == ["empty", "refused"]
    assert "invalid_input" in left_out[1].reason and "it does not fit" in left_out[1].reason


def test_large_mails_are_published_in_small_groups() -> None:
    """What is in memory at once does not grow with the number of large mails."""
    large = [Item(str(n), bytes(GROUP_BYTES // 2)) for n in range(5)]
    assert [len(group) for group in _grouped(large)] == [2, 2, 1]
    small = [Skipped(str(n), "The file is empty.") for n in range(GROUP)] + [Item("x", b"y")] * 3
    assert [len(group) for group in _grouped(small)] == [GROUP, 3]
    assert list(_grouped([])) == []

"""Subjects without the marks that replies and forwards put before them."""

import re

from waybook.inbox.intake.headers import one_line

MAX_SUBJECT = 250
_WORDS = (
    "re aw antw sv vs ref rif rv odp ynt res fw fwd wg tr doorst vb vl enc i rép réf "
    "回复 回覆 答复 答覆 返信 转发 轉寄 転送 تحويل رد"
)
_MARK = re.compile(
    r"^\s*(?:(?:" + "|".join(_WORDS.split()) + r")\s*(?:\[\d+\]|\(\d+\))?\s*[:：]\s*|\[(?:external|ext|extern)\]\s*)+",
    re.IGNORECASE,
)


def bare_subject(subject: str) -> str:
    """The subject on one line without reply and forward marks: by it mails of one thread are found."""
    return _MARK.sub("", one_line(subject)).strip()


def reply_subject(subject: str) -> str:
    """The subject of the answer: one line, one `Re:`, whatever marks the mail carried."""
    bare = bare_subject(subject)
    return f"Re: {bare[:MAX_SUBJECT]}" if bare else "Re: your message"

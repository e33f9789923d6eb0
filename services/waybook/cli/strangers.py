"""Text of strangers on a terminal: it neither controls it nor disguises itself, and honest words stay as they are."""

import unicodedata

_JOINERS = frozenset("\u200c\u200d")
"""Persian and Indic words and emoji hang together by them."""

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Embeddings, overrides and isolates: they can make a name read as another."""

_SILENT = frozenset("\u200e\u200f\u061c")
"""Marks of direction that stand in honest right-to-left text; they turn no letter round."""

_RIGHT_TO_LEFT = frozenset(("R", "AL"))
LEFT_TO_RIGHT = "\u200e"


def shown(text: str, *, marks: bool = False) -> str:
    """`text` on one line. Characters that turn others round are written out as U+202E; other controls become blanks.

    `marks`: a mark around right-to-left words keeps a terminal that orders them from moving the columns beside them.
    """
    line = "".join(_shown(char) for char in text)
    if marks and any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in line):
        return f"{LEFT_TO_RIGHT}{line}{LEFT_TO_RIGHT}"
    return line


def _shown(char: str) -> str:
    if char.isprintable() or char in _JOINERS or char in _SILENT:
        return char
    return f"U+{ord(char):04X}" if char in _TURNING else " "

"""Characters that a reader does not see: removed where they hide something, kept where they carry meaning.

Joiners belong to emoji and to Arabic, Persian and Indic words; direction marks belong to right-to-left text; tag
characters belong to some flags. Everywhere else they only serve to slip past filters or to carry hidden text.
"""

import re

import msgspec

_SUSPECT = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_JOINED_SCRIPT = (
    "\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefc\u0900-\u0dff\u0e80-\u0fff\u1000-\u109f\u1780-\u17ff\u1800-\u18af"
)
_EMOJI = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f\U0001f3fb-\U0001f3ff\u20e3\U000e007f"
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_KEPT = re.compile(
    f"(?<=[{_JOINED_SCRIPT}])[\u200c\u200d](?=[{_JOINED_SCRIPT}])"
    f"|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])"
    "|(?<=[^\\W_]|[#*])\ufe0f?\u20e3"
    "|(?<=[^\\s\u200b-\u200f\ufe00-\ufe0f])[\ufe0e\ufe0f](?![\ufe00-\ufe0f])"
    "|\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180e]"
)
_MARKS_OF_RTL = re.compile("[\u061c\u200e\u200f\u202a\u202b\u202c\u2066-\u2069]")
_ZERO = "[\u200b-\u200d\u2060-\u2064\ufeff\u180e]"
# Within a word, or long enough to carry a message; fillers of preview texts stand between blanks.
_ZERO_WIDTH_RUN = re.compile(f"(?<=[^\\W_]){_ZERO}{{3,}}(?=[^\\W_])|{_ZERO}{{12,}}")
_SPELLED = re.compile(f"(?:[A-Za-z]{_ZERO}+){{6,}}[A-Za-z]")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_OVERRIDE = re.compile("[\u202d\u202e]([^\u202c\u202d\u202e\n]*)(?:\u202c|$|(?=\n))", re.MULTILINE)


class Hidden(msgspec.Struct, frozen=True):
    """Text that a reader does not see, and how it is hidden. `late`: visible text stands before it (no preview)."""

    how: str
    text: str
    late: bool = False


def strip_invisible(text: str) -> str:
    """`text` as a reader sees it: without characters that hide or carry hidden text."""
    if text.isascii() or not _SUSPECT.search(text):
        return text
    kept = {i for m in _KEPT.finditer(text) for i in range(m.start(), m.end())}
    if _RTL.search(text):
        kept |= {m.start() for m in _MARKS_OF_RTL.finditer(text)}
    return _SUSPECT.sub(lambda m: m[0] if m.start() in kept else "", text)


def smuggled(text: str) -> list[Hidden]:
    """Messages and masks made of invisible characters in `text`."""
    if text.isascii() or not _SUSPECT.search(text):
        return []
    found = []
    flags = {i for m in _KEPT.finditer(text) for i in range(m.start(), m.end())}
    tags = "".join(m[0] for m in _TAGS.finditer(text) if m.start() not in flags)
    if len(tags) > 2:
        found.append(Hidden("tag_characters", "".join(chr(ord(c) - 0xE0000) for c in tags)))
    if run := _ZERO_WIDTH_RUN.search(text):
        found.append(Hidden("zero_width_run", text[max(0, run.start() - 20) : run.end() + 20]))
    if spelled := _SPELLED.search(text):
        found.append(Hidden("zero_width_spelling", strip_invisible(text[spelled.start() : spelled.end() + 400])))
    for match in _SELECTORS.finditer(text):
        found.append(Hidden("variation_selectors", _selector_bytes(match[0])))
    for match in _OVERRIDE.finditer(text):
        if len(match[1]) > 3:
            found.append(Hidden("direction_override", match[1][::-1]))
    return found


def _selector_bytes(run: str) -> str:
    codes = bytes(ord(c) - 0xFE00 if ord(c) < 0x10000 else ord(c) - 0xE0100 + 16 for c in run)
    return codes.decode("utf-8", "replace")

"""One comparable form of a text, so that a phrase is found in whatever disguise it comes.

Case, accents, full-width letters, look-alike letters, spaced-out words and soft line ends are folded away; what is
encoded (base64, hexadecimal, percent, rot13, written backwards) is decoded. The patterns pass through the same fold.
"""

import base64
import binascii
import codecs
import re
import unicodedata
from urllib.parse import unquote

from waybook.inbox.scan.invisible import strip_invisible

MAX_SCANNED = 100_000
"""Characters of one text that are scanned: the first half and the last half of a longer one."""
_MARKS = re.compile("[\u0300-\u036f\u0610-\u061a\u064b-\u0655\u0670\u0640\u0483-\u0487]")
_SPLIT = re.compile(r"(?<!\w)(?:\w[ .\-_*|·•/]{1,2}){4,}\w(?!\w)")
_SIGN_WITHIN = re.compile(r"\w[.\-_*|·•/]\w")
_WRAPPED = re.compile(r"(\w)-\n(?=[a-z])")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}(?:\s{1,2}[A-Za-z0-9+/_-]{16,}={0,2})*")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[\s:]?){16,}(?![0-9A-Fa-f])")
_HEX_PAIRS = re.compile(r"(?:[0-9A-Fa-f]{2}[\s:]){8}")
_PERCENT = re.compile(r"[^\s%]{0,20}(?:%[0-9A-Fa-f]{2}[^\s%]{0,20}){3,}")
_ENDLESS = re.compile(r"[!-~]{300,}|\w{1000,}")
_LATIN_WORD = re.compile(r"[a-z]")
_WORD = re.compile(r"\w+")
_LEET = str.maketrans("013457@$!", "oieastasi")
_LEET_WORD = re.compile(r"(?<![a-z@$!0-9])(?=[a-z@$!0-9]*?[a-z])(?=[a-z]*[013457@$!]+[a-z])[a-z@$!0-9]{4,20}")
_NEAR = 160
"""Characters on both sides of a disguise that are searched with it."""

# Letters of other scripts that look like Latin ones (after case folding).
_PAIRS = (
    "аa вb ьb сc ԁd еe ҽe ғf һh нh іi јj кk ӏl мm пn оo рp ԛq гr ѕs тt ѵv шw ԝw хx уy үy αa βb εe ιi κk νv οo "
    "ρp τt υu χx ωw σo ηn γy ϲc ϳj օo հh ոn սu ցg ɡg ɑa ʟl ɴn ʀr ꮪs ꭵi øo đd łl ħh ŧt"
)
_ALIKE: dict[int, str] = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}


def fold(text: str) -> str:
    """`text` in comparable form: lower case, no accents, one blank between words, nothing invisible."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", strip_invisible(text))
        text = unicodedata.normalize("NFC", _MARKS.sub("", text))
    return " ".join(text.casefold().replace("ı", "i").split())


def capped(text: str) -> str:
    """`text`, or its beginning and end where it is too long to be scanned whole."""
    half = MAX_SCANNED // 2
    return text if len(text) <= MAX_SCANNED else f"{text[:half]}\n{text[-half:]}"


def short_words(text: str) -> str:
    """`text` with the middle of endless words cut out: no phrase is that long, and patterns slow down on them."""
    if len(text) < 300 or max(map(len, text.split()), default=0) < 300:
        return text
    return _ENDLESS.sub(lambda m: f"{m[0][:100]} {m[0][-100:]}", text)


def disguises(text: str) -> list[tuple[str, str]]:
    """Further readings of `text` in comparable form, each with the name of the disguise it undoes."""
    found: list[tuple[str, str]] = []
    short = short_words(text)
    plain = fold(short)
    if not plain.isascii() and (alike := look_alikes(plain)) != plain:
        found.append(("look_alike_letters", alike))
    if around := _around(short, _SPLIT):
        found.append(("split_words", fold(_SPLIT.sub(_joined, around))))
    if around := _around(short, _WRAPPED) if "-\n" in short else "":
        found.append(("wrapped_words", fold(_WRAPPED.sub(r"\1", around))))
    if around := _around(plain, _LEET_WORD):
        found.append(("digits_for_letters", _LEET_WORD.sub(lambda m: m[0].translate(_LEET), around)))
    if "snoitcurtsni" in plain or "erongi" in plain or "tpmorp" in plain:
        found.append(("written_backwards", plain[::-1]))
    if "vtaber" in plain or "vafgehpgvbaf" in plain:
        found.append(("rot13", codecs.decode(plain, "rot13")))
    found.extend((name, fold(decoded)) for name, decoded in decoded_parts(text))
    return found


def _around(text: str, pattern: re.Pattern[str]) -> str:
    """The stretches of `text` around what a pattern finds: only there does undoing the disguise change anything."""
    stretches: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        start, end = max(0, match.start() - _NEAR), match.end() + _NEAR
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((start, end))
    return " | ".join(text[start:end] for start, end in stretches)


def _joined(match: re.Match[str]) -> str:
    """Single signs between letters go, two of them divide words; where signs stand between letters, blanks do."""
    if _SIGN_WITHIN.search(match[0]):
        return re.sub(r"[.\-_*|·•/]+", "", match[0])
    return re.sub(r"[ .\-_*|·•/]+", lambda gap: " " if len(gap[0]) > 1 else "", match[0])


def look_alikes(plain: str) -> str:
    """Look-alikes replaced in words that mix scripts, and in all words of a text that is mostly Latin."""
    letters = [c for c in plain if c.isalpha()]
    latin = sum(1 for c in letters if c.isascii())
    mostly = latin * 2 > len(letters)

    def word(match: re.Match[str]) -> str:
        text = match[0]
        if text.isascii() or not (mostly or _LATIN_WORD.search(text)):
            return text
        return text.translate(_ALIKE)

    return _WORD.sub(word, plain)


def decoded_parts(text: str) -> list[tuple[str, str]]:
    """What the encoded stretches of `text` say, as far as it is readable text."""
    found: list[tuple[str, str]] = []
    if "%" not in text and max(map(len, text.split()), default=0) < 16 and not _HEX_PAIRS.search(text):
        return found
    for name, pattern, decode in (
        ("base64", _BASE64, _base64),
        ("hexadecimal", _HEX, _hex),
        ("percent", _PERCENT, unquote),
    ):
        for match in list(pattern.finditer(text))[:20]:
            decoded = decode(match[0][:8000])
            if decoded and _readable(decoded):
                found.append((name, decoded))
    return found


def _base64(data: str) -> str | None:
    joined = "".join(data.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(joined[: len(joined) - (len(joined) % 4 == 1)] + "=" * (-len(joined) % 4)).decode()
    except (binascii.Error, ValueError):
        return None


def _hex(data: str) -> str | None:
    try:
        return bytes.fromhex(re.sub(r"[\s:]", "", data)).decode()
    except ValueError:
        return None


def _readable(text: str) -> bool:
    good = sum(1 for c in text if c.isalnum() or c in " \n\t.,:;!?'\"-()")
    return len(text) >= 8 and good >= 0.9 * len(text) and (" " in text or not text.isascii())

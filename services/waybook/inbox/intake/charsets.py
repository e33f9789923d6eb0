"""Bytes to text, whatever the mail says about its charset."""

import codecs
import re
from encodings.aliases import aliases
from functools import lru_cache

# Codecs that are no charset: some change the data, some take quadratic time, some run escapes.
_NO_TEXT = (
    "base64_codec bz2_codec hex_codec quopri_codec rot_13 uu_codec zlib_codec idna punycode undefined "
    "unicode_escape raw_unicode_escape mbcs oem palmos"
)
_NOT_CHARSETS = frozenset(_NO_TEXT.split())
_CHARSETS = frozenset(aliases.values()) - _NOT_CHARSETS

# What senders write, and what browsers read it as (WHATWG Encoding: supersets in place of the narrow standard).
_WHATWG = {
    "ascii": "utf_8",
    "us-ascii": "utf_8",
    "ansi_x3.4-1968": "utf_8",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "iso8859-1": "cp1252",
    "ansi": "cp1252",
    "iso-8859-8-i": "iso8859_8",
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "gb_2312-80": "gb18030",
    "hz-gb-2312": "hz",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "iso-2022-jp": "iso2022_jp_ext",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "ksc5601": "cp949",
    "big5": "big5hkscs",
    "unicode-1-1-utf-7": "utf_7",
    "utf-8": "utf_8",
    "utf8": "utf_8",
    "utf-16": "utf_16",
    "macintosh": "mac_roman",
    "x-mac-roman": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
}
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


@lru_cache(maxsize=256)
def codec_of(charset: str) -> str | None:
    """The Python codec for a charset as mails name it, or None when nobody knows it."""
    name = re.split(r"[;\s]", charset.strip().strip("\"'").strip().lower(), maxsplit=1)[0].strip("\"'")
    if name in _WHATWG:
        return _WHATWG[name]
    for candidate in (name, name.removeprefix("x-"), name.replace("cp-", "cp")):
        try:
            found = codecs.lookup(candidate).name
        except (LookupError, ValueError):  # ValueError: a NUL in the name
            continue
        if found.replace("-", "_") in _CHARSETS:
            return found
    return None


def decode_bytes(data: bytes, charset: str | None) -> tuple[str, str | None]:
    """The text of `data`, and a remark when its charset was unknown or wrong. Never raises.

    Without a usable charset it is UTF-8 where that fits, else Windows-1252.
    """
    codec = codec_of(charset) if charset else None
    remark = None if codec or charset is None else f"unknown charset {charset[:40]!r}"
    if codec:
        try:
            return clean_text(data.decode(codec)), None
        except (UnicodeError, LookupError):
            remark = f"text is not valid {charset!r}"[:80]
    if codec in (None, "utf_8"):
        try:
            return clean_text(data.decode("utf-8")), remark
        except UnicodeDecodeError:
            if charset is None:
                remark = "8-bit text without a charset"
            codec = "cp1252" if not _mostly_utf8(data) else "utf-8"
    return clean_text(data.decode(codec or "cp1252", "replace")), remark


def _mostly_utf8(data: bytes) -> bool:
    """Whether broken bytes are the exception in `data`: then it is damaged UTF-8, not another charset."""
    text = data.decode("utf-8", "replace")
    good = sum(1 for c in text if c > "\x7f" and c != REPLACEMENT)
    return good > text.count(REPLACEMENT)


def clean_text(text: str) -> str:
    """`text` with LF line ends, and U+FFFD in place of NULs and lone surrogates: no store takes those."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(REPLACEMENT, text) if not text.isascii() or "\0" in text else text


def undo_escapes(text: str) -> bytes:
    """The bytes that the header parser smuggled into a str as surrogates."""
    return text.encode("utf-8", "surrogateescape") if not text.isascii() else text.encode("ascii")

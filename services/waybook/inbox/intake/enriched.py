"""text/enriched and text/richtext (RFC 1896) as plain text: its commands are dropped, its words stay."""

import re

_PARAM = re.compile(r"(?is)<param>.{0,500}?</param>")
_COMMAND = re.compile(r"</?[A-Za-z][A-Za-z0-9-]{0,59}>")


def to_plain(text: str) -> str:
    """The words of enriched text; `<nl>` is a line end, `<<` a literal angle bracket."""
    text = _PARAM.sub("", text.replace("<<", "\0"))
    text = re.sub(r"(?i)<nl>|<paragraph>|</paragraph>", "\n", text)
    return _COMMAND.sub("", text).replace("\0", "<")

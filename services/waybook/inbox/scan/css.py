"""The few CSS properties by which text is hidden, read as a browser reads them.

Inline styles of the usual shape are taken apart by one expression; whatever is unusual (escapes, comments, quotes)
and all style sheets go through tinycss2.
"""

import re
from functools import lru_cache

import msgspec
import tinycss2

MAX_SHEET = 65_536
MAX_RULES = 500
_HIDING = (
    "display visibility opacity font-size font color background background-color background-image position left top "
    "right "
    "bottom text-indent margin margin-left margin-top transform clip clip-path overflow overflow-x overflow-y height "
    "width "
    "max-height max-width content-visibility filter -webkit-text-fill-color line-height"
)
HIDING = frozenset(_HIDING.split())
Declarations = dict[str, tuple[str, bool]]
"""Property to its value and whether it is `!important`."""

_PLAIN = re.compile(r"[^\\/*\"']*")
_DECLARATION = re.compile(r"(?:^|;)\s*([a-zA-Z-]+)\s*:((?:[^;(]|\([^)]*\))*)")
_IMPORTANT = re.compile(r"\s*!\s*important\s*$", re.IGNORECASE)
_LENGTH = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(px|pt|pc|em|rem|ex|ch|%|vw|vh|in|cm|mm|q)?", re.IGNORECASE
)
_PIXELS = {
    "px": 1.0,
    "pt": 4 / 3,
    "pc": 16.0,
    "in": 96.0,
    "cm": 37.8,
    "mm": 3.78,
    "q": 0.945,
    "rem": 16.0,
    "vw": 10.24,
    "vh": 7.68,
}
VIEWPORT = 1024.0
"""Width in pixels of the screen on which media queries are decided."""


class SheetRule(msgspec.Struct, frozen=True):
    """A style rule that can hide something: its selector, weight and declarations."""

    selector: str
    specificity: tuple[int, int, int]
    declarations: Declarations


@lru_cache(maxsize=4096)
def inline_style(text: str) -> Declarations:
    """The hiding declarations of a style attribute; the last of a name counts, `!important` first."""
    if len(text) > 20_000:
        text = text[:20_000]
    if _PLAIN.fullmatch(text):
        return _keep((m[1].lower(), m[2]) for m in _DECLARATION.finditer(text))
    return _from_tokens(tinycss2.parse_blocks_contents(text, skip_comments=True, skip_whitespace=True))


def _keep(pairs: "object") -> Declarations:
    found: Declarations = {}
    for name, value in pairs:  # type: ignore[attr-defined]
        if name in HIDING:
            bare = _IMPORTANT.sub("", value)
            important = bare is not value and bare != value
            if not (name in found and found[name][1] and not important):
                found[name] = (bare.strip().lower(), important)
    return found


def _from_tokens(tokens: list[object]) -> Declarations:
    found: Declarations = {}
    for token in tokens:
        if getattr(token, "type", "") == "declaration":
            name, important = str(getattr(token, "lower_name", "")), bool(getattr(token, "important", False))
            if name in HIDING and not (name in found and found[name][1] and not important):
                found[name] = (tinycss2.serialize(getattr(token, "value", [])).strip().lower(), important)
    return found


def sheet_rules(text: str) -> list[SheetRule]:
    """The rules of a style sheet that can hide something, in order, as far as they hold on a wide screen."""
    rules: list[SheetRule] = []
    _collect(tinycss2.parse_stylesheet(text[:MAX_SHEET], skip_comments=True, skip_whitespace=True), rules, 0)
    return rules


def _collect(nodes: list[object], rules: list[SheetRule], depth: int) -> None:
    for node in nodes:
        kind = getattr(node, "type", "")
        if len(rules) >= MAX_RULES:
            return
        if kind == "qualified-rule":
            content = tinycss2.parse_blocks_contents(
                getattr(node, "content", []), skip_comments=True, skip_whitespace=True
            )
            declarations = _from_tokens(content)
            if declarations:
                selectors = tinycss2.serialize(getattr(node, "prelude", []))
                rules.extend(SheetRule(s, specificity(s), declarations) for s in _selectors(selectors))
        elif kind == "at-rule" and depth < 3 and getattr(node, "content", None) is not None:
            name, prelude = str(getattr(node, "lower_at_keyword", "")), tinycss2.serialize(getattr(node, "prelude", []))
            if name in ("supports", "layer") or (name == "media" and media_applies(prelude)):
                content = getattr(node, "content", [])
                _collect(tinycss2.parse_rule_list(content, skip_comments=True, skip_whitespace=True), rules, depth + 1)


def _selectors(text: str) -> list[str]:
    """The selectors of a list; commas inside brackets do not divide."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in [*parts, text[start:].strip()] if part][:50]


def media_applies(query: str) -> bool:
    """Whether a media query holds on a wide screen; a part that is not understood counts as true."""
    return any(_media_part(part.strip().lower()) for part in query.split(",")) if query.strip() else True


def _media_part(part: str) -> bool:
    negated = part.startswith("not ")
    words = part.removeprefix("not ").removeprefix("only ")
    holds = not words.startswith(("print", "speech"))
    for feature, value in re.findall(
        r"\(\s*(min-width|max-width|min-device-width|max-device-width)\s*:\s*([^)]+)\)", words
    ):
        size = length(value.strip(), 16.0)
        if size is not None:
            holds = holds and (size <= VIEWPORT if feature.startswith("min") else size >= VIEWPORT)
    if "prefers-color-scheme" in words and "dark" in words:
        holds = False
    return holds != negated


def specificity(selector: str) -> tuple[int, int, int]:
    """Weight of a selector: ids; classes, attributes and pseudo-classes; elements."""
    ids = len(re.findall(r"#[\w-]+", selector))
    classes = len(re.findall(r"\.[\w-]+|\[[^\]]*\]|(?<!:):(?!:)[\w-]+", selector))
    return ids, classes, len(re.findall(r"(?:^|[\s>+~])[a-zA-Z][\w-]*", selector))


def length(value: str, em: float) -> float | None:
    """A length in pixels; `em` is the font size that relative units refer to. None when it is none."""
    match = _LENGTH.fullmatch(value.strip())
    if match is None:
        inner = re.fullmatch(r"calc\(\s*([^()+*/]+?)\s*\)", value.strip())
        return length(inner[1], em) if inner else None
    number, unit = float(match[1]), (match[2] or "").lower()
    if not unit:
        return number  # zero, or the quirk of old mail programs that leave the unit away
    if unit in ("em", "ex", "ch", "%"):
        return number * em * {"em": 1.0, "ex": 0.5, "ch": 0.5, "%": 0.01}[unit]
    return number * _PIXELS[unit]

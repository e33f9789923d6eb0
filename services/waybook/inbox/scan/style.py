"""Whether an element shows its text: the state that is handed down the tree, and the reasons to hide."""

import re
from functools import lru_cache

import msgspec

from waybook.inbox.scan.color import BLACK, INVISIBLE_CONTRAST, WHITE, Color, contrast, parse_color
from waybook.inbox.scan.css import Declarations, length

FAR = 300.0
"""Pixels beyond the edge from which text counts as off-screen."""
_SIZES = {
    "xx-small": 9.0,
    "x-small": 10.0,
    "small": 13.0,
    "medium": 16.0,
    "large": 18.0,
    "x-large": 24.0,
    "xx-large": 32.0,
}
_FONT_SIZE = re.compile(r"(?:^|\s)([\d.]+(?:px|pt|em|rem|%|ex|vw|pc|in|cm|mm)?|0)(?:\s*/\s*[^\s]+)?(?=\s|$)")
_ZERO_SCALE = re.compile(r"(?:scale(?:3d|x|y)?|matrix)\(\s*0(?:\.0*)?\d?\s*[,)]|rotate[xy]\(\s*-?90deg")
_MOVE = re.compile(r"translate(?:x|y|3d)?\(\s*([^,()]+)(?:,\s*([^,()]+))?")
_CLIPPED = re.compile(
    r"inset\(\s*(?:[5-9]\d|1\d\d)(?:\.\d+)?%|circle\(\s*0|ellipse\(\s*0|polygon\(\s*0(?:px|%)?\s+0(?:px|"
    r"%)?\s*(?:,\s*0(?:px|%)?\s+0(?:px|%)?\s*)*\)"
)


class Look(msgspec.Struct, frozen=True):
    """What an element hands down to what it contains. `ground` is None where a picture lies behind the text."""

    font_size: float = 16.0
    color: Color = BLACK
    ground: Color | None = WHITE
    opacity: float = 1.0
    visible: bool = True
    indent: float = 0.0


@lru_cache(maxsize=4096)
def text_hidden(look: Look) -> str | None:
    """Why text with this look cannot be seen; None when it can."""
    if not look.visible:
        return "visibility"
    if look.font_size < 2.0:
        return "font_size"
    if look.color[3] * look.opacity < 0.1:
        return "transparent"
    if look.indent <= -FAR:
        return "text_indent"
    if look.ground is not None and contrast(look.color, look.ground) < INVISIBLE_CONTRAST:
        return "same_color"
    return None


@lru_cache(maxsize=4096)
def apply_style(above: Look, style: tuple[tuple[str, tuple[str, bool]], ...]) -> Look | str:
    """The look inside an element with `style` that stands inside `above`, or the reason why it shows nothing.

    Cached: a mail repeats few styles many times.
    """
    declarations = dict(style)
    return element_hidden(declarations) or inherit(above, declarations)


def element_hidden(style: Declarations) -> str | None:
    """Why nothing inside an element with this style can be seen, whatever its children say; None when it can."""
    value = _Values(style)
    if value("display") == "none":
        return "display_none"
    if value("content-visibility") == "hidden":
        return "content_visibility"
    if "opacity(0" in value("filter").replace(" ", ""):
        return "filter"
    return _moved_away(value) or _clipped(value) or _no_room(value)


class _Values:
    def __init__(self, style: Declarations) -> None:
        self._style = style

    def __call__(self, name: str) -> str:
        found = self._style.get(name)
        return found[0] if found else ""

    def size(self, name: str) -> float | None:
        text = self(name)
        return length(text, 16.0) if text else None


def _moved_away(value: _Values) -> str | None:
    if value("position") in ("absolute", "fixed", "relative"):
        if any((size := value.size(side)) is not None and size <= -FAR for side in ("left", "top", "right", "bottom")):
            return "off_screen"
        if any((size := value.size(side)) is not None and size >= 4000 for side in ("left", "top")):
            return "off_screen"
    margins = value("margin").split()
    sides = [value("margin-left"), value("margin-top"), *margins]
    if any((size := length(side, 16.0)) is not None and size <= -FAR for side in sides if side):
        return "off_screen"
    transform = value("transform")
    if transform:
        if _ZERO_SCALE.search(transform):
            return "transform"
        move = _MOVE.search(transform)
        if move and any((size := length(m, 16.0)) is not None and abs(size) >= FAR for m in move.groups() if m):
            return "off_screen"
    return None


def _clipped(value: _Values) -> str | None:
    clip = value("clip")
    if clip.startswith("rect(") and value("position") in ("absolute", "fixed"):
        sizes = [length(part, 16.0) for part in re.findall(r"-?[\d.]+[a-z]*", clip)]
        if len(sizes) == 4 and all(size is not None and abs(size) <= 1 for size in sizes):
            return "clipped"
    return "clipped" if _CLIPPED.search(value("clip-path")) else None


def _no_room(value: _Values) -> str | None:
    """A box without room whose overflow is cut off."""
    if not any(value(name).startswith(("hidden", "clip")) for name in ("overflow", "overflow-x", "overflow-y")):
        return None
    for name in ("height", "width", "max-height", "max-width"):
        size = value.size(name)
        if size is not None and size <= 1.0:
            return "no_room"
    return None


def inherit(above: Look, style: Declarations) -> Look:
    """The look inside an element with `style` that stands inside `above`."""
    value = _Values(style)
    visibility = value("visibility")
    opacity = _fraction(value("opacity"))
    color = parse_color(value("-webkit-text-fill-color") or value("color"))
    indent = value("text-indent")
    return Look(
        font_size=_font_size(above.font_size, value),
        color=color or above.color,
        ground=_ground(above.ground, value),
        opacity=above.opacity * (1.0 if opacity is None else max(0.0, min(1.0, opacity))),
        visible=above.visible if visibility not in ("hidden", "collapse", "visible") else visibility == "visible",
        indent=above.indent if not indent else length(indent, above.font_size) or 0.0,
    )


def _fraction(text: str) -> float | None:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def _font_size(above: float, value: _Values) -> float:
    text = value("font-size")
    if not text and value("font"):
        match = _FONT_SIZE.search(value("font"))
        text = match[1] if match else ""
    if not text:
        return above
    if text in ("smaller", "larger"):
        return above * (0.83 if text == "smaller" else 1.2)
    size = _SIZES.get(text) or length(text, above)
    return above if size is None or size < 0 else size


def _ground(above: Color | None, value: _Values) -> Color | None:
    picture = value("background-image") or value("background")
    if "url(" in picture or "gradient(" in picture:
        return None
    for name in ("background-color", "background"):
        for word in re.findall(r"[#\w]+(?:\([^)]*\))?", value(name)):
            color = parse_color(word) if not word.isdigit() else None
            if color is not None and color[3] > 0.5:
                return color
    return above

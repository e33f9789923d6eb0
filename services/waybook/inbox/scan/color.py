"""CSS colours, as far as it takes to say whether text stands out from its background."""

import re
from functools import lru_cache

Color = tuple[float, float, float, float]
"""Red, green and blue from 0 to 255, and the opacity from 0 to 1."""
WHITE: Color = (255.0, 255.0, 255.0, 1.0)
BLACK: Color = (0.0, 0.0, 0.0, 1.0)
_NAMES = {
    "white": "ffffff", "black": "000000", "snow": "fffafa", "ivory": "fffff0", "ghostwhite":
        "f8f8ff", "whitesmoke": "f5f5f5",
    "floralwhite": "fffaf0", "mintcream": "f5fffa", "azure": "f0ffff", "aliceblue": "f0f8ff", "seashell": "fff5ee",
    "honeydew": "f0fff0", "lightyellow": "ffffe0", "lightcyan": "e0ffff", "lavenderblush": "fff0f5",
        "oldlace": "fdf5e6",
    "linen": "faf0e6", "beige": "f5f5dc", "cornsilk": "fff8dc", "lavender": "e6e6fa", "gainsboro":
        "dcdcdc", "silver": "c0c0c0",
    "lightgray": "d3d3d3", "lightgrey": "d3d3d3", "gray": "808080", "grey": "808080", "red":
        "ff0000", "green": "008000",
    "blue": "0000ff", "yellow": "ffff00", "navy": "000080", "maroon": "800000", "purple": "800080", "teal": "008080",
    "orange": "ffa500", "darkgray": "a9a9a9", "darkgrey": "a9a9a9", "lime": "00ff00", "aqua":
        "00ffff", "cyan": "00ffff",
    "fuchsia": "ff00ff", "magenta": "ff00ff", "olive": "808000", "pink": "ffc0cb", "darkblue":
        "00008b", "dimgray": "696969",
}  # fmt: skip
_FUNCTION = re.compile(r"(rgba?|hsla?)\(\s*([^()]*)\)")
INVISIBLE_CONTRAST = 1.15
"""Text with less contrast than this cannot be read (readable text begins at 3, by WCAG)."""


@lru_cache(maxsize=1024)
def parse_color(value: str) -> Color | None:
    """A colour; None when `value` is none that is understood."""
    text = value.strip().lower()
    if text == "transparent":
        return (0.0, 0.0, 0.0, 0.0)
    digits = _NAMES.get(text) or (text.removeprefix("#"))
    if re.fullmatch(r"[0-9a-f]{3,4}", digits):
        digits = "".join(c * 2 for c in digits)
    if re.fullmatch(r"[0-9a-f]{6}(?:[0-9a-f]{2})?", digits):
        parts = [float(int(digits[i : i + 2], 16)) for i in range(0, len(digits), 2)]
        return (parts[0], parts[1], parts[2], parts[3] / 255 if len(parts) == 4 else 1.0)
    match = _FUNCTION.fullmatch(text)
    return _function(match[1], re.findall(r"-?[\d.]+%?", match[2])) if match else None


def _function(name: str, values: list[str]) -> Color | None:
    try:
        alpha = _number(values[3], 1.0) if len(values) > 3 else 1.0
        if name.startswith("rgb"):
            return (_number(values[0], 255.0), _number(values[1], 255.0), _number(values[2], 255.0), alpha)
        light = _number(values[2], 1.0)
        if _number(values[1], 1.0) > 0.2 and 0.02 < light < 0.98:
            return None  # a true hue: not worth its arithmetic, it is no white on white
        return (light * 255, light * 255, light * 255, alpha)
    except (IndexError, ValueError):
        return None


def _number(text: str, full: float) -> float:
    return float(text[:-1]) * full / 100 if text.endswith("%") else float(text)


@lru_cache(maxsize=1024)
def contrast(text: Color, ground: Color) -> float:
    """The contrast of WCAG between two opaque colours: 1 (equal) to 21."""
    high, low = sorted((_luminance(text), _luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    parts = [c / 255 for c in color[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

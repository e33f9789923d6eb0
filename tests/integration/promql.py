"""What a PromQL expression asks for: metrics, the matchers beside each, and the labels that it groups by."""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<duration>\[[^\]]*\])
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<number>[0-9][0-9.eE]*)
    |(?P<match>=~|!~|!=|==|<=|>=|=)
    |(?P<sign>[-+*/%^<>(){},])
    |(?P<blank>\s+)""",
    re.VERBOSE,
)
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = frozenset({"and", "or", "unless", "bool", "offset"})


class Selector(NamedTuple):
    """A metric with its matchers: label, operator, value."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]


class Query(NamedTuple):
    """Everything that an expression names."""

    selectors: tuple[Selector, ...]
    grouping: frozenset[str]


def read(expression: str) -> Query:
    """Fails on what it does not understand, rather than pass over a metric."""
    tokens = _tokens(expression)
    selectors: list[Selector] = []
    grouping: set[str] = set()
    position = 0
    while position < len(tokens):
        kind, text = tokens[position]
        following = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        if kind == "name" and text in _GROUPING:
            end = tokens.index(("sign", ")"), position)
            grouping |= {t for k, t in tokens[position + 1 : end] if k == "name"}
            position = end
        elif kind == "name" and text not in _WORDS and following not in ("(", "by", "without"):
            end = tokens.index(("sign", "}"), position) if following == "{" else position
            selectors.append(Selector(text, _matchers(tokens[position + 2 : end])))
            position = end
        position += 1
    return Query(tuple(selectors), frozenset(grouping))


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(expression):
        found = _TOKEN.match(expression, position)
        assert found is not None, f"{expression!r} is not understood at {expression[position:]!r}"
        position = found.end()
        if found.lastgroup != "blank":
            tokens.append((str(found.lastgroup), found[0]))
    return tokens


def _matchers(tokens: list[tuple[str, str]]) -> tuple[tuple[str, str, str], ...]:
    parts = [text for kind, text in tokens if (kind, text) != ("sign", ",")]
    return tuple((parts[i], parts[i + 1], parts[i + 2][1:-1]) for i in range(0, len(parts), 3))

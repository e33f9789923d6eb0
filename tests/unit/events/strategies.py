"""Hypothesis strategies for the contract's structs, made from their annotations."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from waybook.events.commit import Commit
from waybook.events.engine import ENGINE_EVENTS

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
RAWS = st.dictionaries(TEXT, JSON_VALUES, max_size=3).map(lambda value: msgspec.Raw(msgspec.json.encode(value)))


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation as it stands in the contract."""
    plain = {str: TEXT, int: INTEGERS, bool: st.booleans(), type(None): st.none(), Any: JSON_VALUES, msgspec.Raw: RAWS}
    if kind in plain:
        return plain[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(a) for a in arguments])
    if origin is dict:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=3)
    if origin is tuple:
        return st.lists(of_type(arguments[0]), max_size=3).map(tuple)
    return structs(kind)


def structs(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of a struct; members with a default are sometimes left out."""
    hints = get_type_hints(cls)
    fields = msgspec.structs.fields(cls)
    required = {f.name: of_type(hints[f.name]) for f in fields if f.required}
    optional = {f.name: of_type(hints[f.name]) for f in fields if not f.required and f.name != "schemas"}
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: cls(**values))


EVENTS = st.one_of([structs(cls) for cls in ENGINE_EVENTS.values()])
COMMITS = st.builds(
    Commit,
    version=INTEGERS,
    walk=INTEGERS,
    at=INTEGERS,
    actor=TEXT,
    definition=TEXT,
    events=st.lists(EVENTS, min_size=1, max_size=5).map(tuple),
    commands=st.lists(TEXT, max_size=3).map(tuple),
)

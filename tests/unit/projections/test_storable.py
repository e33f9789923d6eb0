"""Text and JSON that PostgreSQL takes; the integration tests store the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybook.projections.storable import clean_json, json_text, text


def test_nul_and_lone_surrogates_are_replaced() -> None:
    assert text("a\x00b\ud800c\udfff") == "a\ufffdb\ufffdc\ufffd"
    dirty = json_text({"a\x00": ["\ud800", "\U0001f600"]})
    assert clean_json(dirty) == '{"a\ufffd":["\ufffd","\U0001f600"]}'


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"a":"\\ud83d\\ude00"}', '{"a":"\U0001f600"}'),
        (b'"\\ud800"', '"\ufffd"'),
        (b'{"a":"\\u0000"}', '{"a":"\ufffd"}'),
        (b'"back\\\\u0000slash"', '"back\\\\u0000slash"'),
        (b"[1e131072,2E-16384,1e99999999999]", '["1e131072","2E-16384","1e99999999999"]'),
        (b"[1e131071,2E-16383,0.10e131072,1.10]", "[1e131071,2E-16383,0.10e131072,1.10]"),
    ],
)
def test_escapes_and_numbers_that_jsonb_refuses_are_replaced(raw: bytes, expected: str) -> None:
    assert clean_json(raw.decode()) == expected


@given(
    st.recursive(st.none() | st.integers() | st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.lists)
)
def test_other_json_stays_as_it_is(value: object) -> None:
    assert json.loads(clean_json(json.dumps(value))) == value

"""Commands and answers as bytes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.events.strategies import structs

from waybook.events.command import Answer, Command, SignalPayload, StartPayload


@settings(max_examples=40)
@pytest.mark.parametrize("cls", [Command, Answer, StartPayload, SignalPayload])
@given(data=st.data())
def test_they_come_back_as_they_went_in(cls: type[Any], data: st.DataObject) -> None:
    value = data.draw(structs(cls))
    assert msgspec.json.decode(msgspec.json.encode(value), type=cls) == value


def test_an_absent_payload_is_null() -> None:
    assert bytes(msgspec.json.decode(b'{"event":"A","reference":"x"}', type=StartPayload).body) == b"null"

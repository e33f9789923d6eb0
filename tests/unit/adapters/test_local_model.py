"""What the local model is asked is bounded: a part of what the schema admits, and never more than it can read."""

from typing import Any

import jsonschema_rs

from waybook.adapters.models.local import MOST_SURE, bounded, estimated_tokens, fitting, shape
from waybook.agents.model import ModelRequest, Section
from waybook.inbox.classify import SCHEMA as CLASSIFY
from waybook.inbox.context import EXTRACTION_SCHEMA
from waybook.inbox.draft import CHECK_SCHEMA
from waybook.inbox.scan.guard import SCHEMA as GUARD


def request(*sections: Section, schema: Any = None) -> ModelRequest:
    return ModelRequest(role="draft", instructions="Answer.", sections=sections, schema=schema)


def test_every_schema_of_the_inbox_can_be_bounded() -> None:
    for schema in (CLASSIFY, EXTRACTION_SCHEMA, CHECK_SCHEMA, GUARD):
        jsonschema_rs.validator_for(bounded(schema))


def test_a_share_stands_in_steps_below_what_lets_a_reply_leave() -> None:
    told = bounded(CHECK_SCHEMA)["properties"]["score"]["enum"]
    assert min(told) == 0 and max(told) == MOST_SURE
    assert max(bounded(CHECK_SCHEMA, 1.0)["properties"]["score"]["enum"]) == 1.0


def test_texts_and_lists_have_an_end() -> None:
    assert bounded({"type": "string"}) == {"type": "string", "maxLength": 160}
    assert bounded(CLASSIFY)["properties"]["intents"]["maxItems"] == 1
    assert bounded({"type": "string", "enum": ["a"]}) == {"type": "string", "enum": ["a"]}


def test_a_text_is_written_under_a_grammar_of_sentences() -> None:
    told = shape(request())
    assert "sentence" in told["grammar"] and "response_format" not in told and told["temperature"] == 0


def test_what_is_too_long_is_cut_in_proportion_and_trusted_text_is_not() -> None:
    given = request(
        Section("signature", "s" * 300, trusted=True), Section("message", "m" * 3000), Section("context", "c" * 6000)
    )
    short = fitting(given, 1000)
    assert [len(one.text) for one in short.sections] == [300, 1000, 2000]
    assert fitting(given, 4000) is given


def test_letters_of_other_scripts_count_more() -> None:
    assert estimated_tokens("abc") == 1 and estimated_tokens("注文") == 4

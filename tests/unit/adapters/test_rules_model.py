"""The offline model: honest about being rules, right about the plain cases."""

from typing import Any

import pytest

from waybook.adapters.models.rules import RulesModel
from waybook.agents.model import Model, ModelAnswer, ModelRefused, ModelRequest, Section


def request(role: str, **sections: str) -> ModelRequest:
    return ModelRequest(role=role, instructions="", sections=tuple(Section(k, v) for k, v in sections.items()))


async def classified(subject: str, message: str) -> dict[str, Any]:
    answer = await RulesModel().ask(request("classify", subject=subject, message=message))
    assert isinstance(answer.data, dict)
    return answer.data


CASES = [
    ("en", "billing", "question", "Hello, I was charged twice on invoice 4711. Could you refund one payment?"),
    ("en", "support", "question", "Where is my order 4711?"),
    ("de", "support", "question", "Guten Tag, die App stürzt beim Anmelden ab. Was kann ich tun?"),
    ("fr", "complaint", "complaint", "Votre livreur était impoli, c'est inacceptable. Je veux un remboursement."),
    ("es", "billing", "request", "Por favor, envíen la factura de marzo a mi correo."),
    ("it", "support", "question", "Buongiorno, quando arriva il mio ordine 123?"),
    ("ja", "support", "question", "注文番号123の商品がまだ届きません。いつ届きますか。"),
    ("zh", "billing", "question", "你好，我的退款什么时候到账？"),
    ("ru", "support", "question", "Здравствуйте, где мой заказ?"),
    ("en", "feature_request", "request", "It would be great if you could add a dark mode."),
]


@pytest.mark.parametrize(("language", "category", "intent", "text"), CASES)
async def test_plain_cases_are_told_apart(language: str, category: str, intent: str, text: str) -> None:
    """In the languages that the rules know."""
    data = await classified("", text)
    (only,) = data["intents"]
    assert (data["language"], only["category"], only["intent"]) == (language, category, intent)


async def test_two_matters_are_two_intents() -> None:
    """Each with the words that it stands for."""
    data = await classified("", "Please check my billing status. Also, when does the shop open?")
    assert [i["category"] for i in data["intents"]] == ["billing", "support"]
    assert "shop open" in data["intents"][1]["about"]


async def test_urgency_and_thanks_are_noticed() -> None:
    """And a mail that only thanks wants no reply."""
    assert (await classified("URGENT: down", "We need help immediately."))["intents"][0]["priority"] == "urgent"
    data = await classified("Re: order", "Thanks, works now!")
    assert not data["needs_response"] and data["intents"][0]["intent"] == "acknowledgment"


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Thank you"),
        ("de", "vielen Dank"),
        ("fr", "Merci"),
        ("es", "Gracias"),
        ("it", "grazie"),
        ("ja", "ありがとう"),
        ("xx", "Thank you"),
    ],
)
async def test_drafts_are_in_the_senders_language(language: str, words: str) -> None:
    """English where the rules do not know it."""
    answer = await RulesModel().ask(
        request("draft", language=language, classification="category: billing", recipient_name="Doe, Ann")
    )
    assert words in answer.text and "Ann Doe" in answer.text


async def test_rules_are_honest_about_themselves() -> None:
    """Their name, no tokens, no guard, and a low score for their own drafts."""
    model: Model = RulesModel()
    answer = await model.ask(request("self_check", draft="x", message="When?"))
    assert (answer.model, answer.usage) == ("rules", None)
    assert answer.data["score"] < 0.8
    with pytest.raises(ModelRefused):
        await model.ask(request("guard", message="x"))


async def test_the_stream_ends_with_the_whole_answer() -> None:
    """Its pieces are the text."""
    pieces = [p async for p in RulesModel().stream(request("draft", language="en"))]
    last = pieces[-1]
    assert isinstance(last, ModelAnswer) and last.text == "".join(p for p in pieces if isinstance(p, str))


async def test_the_same_question_gets_the_same_answer() -> None:
    """Rules are deterministic."""
    assert await classified("a", "b c? d!") == await classified("a", "b c? d!")

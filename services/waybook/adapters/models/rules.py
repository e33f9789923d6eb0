"""`rules`: the offline default of the `Model` port. Fixed word lists and templates, no network, no download.

It is honest about being rules: its name is `rules`, it counts no tokens, it is no guard, and its own drafts get a low
score from its self-check, so that nothing it wrote is ever approved without a person.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from functools import cache

from waybook.adapters.models.rules_drafts import LANGUAGES, write_reply
from waybook.adapters.models.rules_language import language_of, plain
from waybook.adapters.models.rules_words import (
    CATEGORIES,
    CONNECTORS,
    INTENTS,
    LOW,
    NEGATIVE,
    POSITIVE,
    THANKS,
    URGENT,
)
from waybook.agents.model import ModelAnswer, ModelRefused, ModelRequest

NAME = "rules"
_SENTENCE = re.compile(r"(?<=[.!?。！？؟])\s+|(?<=[。！？])|\n{2,}")
_CONNECTOR = re.compile(rf"(?i)^\W*(?:{CONNECTORS})(?![a-z])")
_MAX_INTENTS = 3


class RulesModel:
    """A Model that answers the roles extraction, classify, draft and self_check by fixed rules."""

    name = NAME

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """The rules' answer. Raises ModelRefused for a role that they do not know; a guard is one of those."""
        answer = _ROLES.get(request.role)
        if answer is None:
            raise ModelRefused(f"rules has no answer for the role {request.role}; configure a model for it")
        data = answer(request)
        if isinstance(data, str):
            return ModelAnswer(model=NAME, text=data, free=True)
        return ModelAnswer(model=NAME, text=json.dumps(data, ensure_ascii=False), data=data, free=True)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelAnswer]:
        """The answer's text paragraph by paragraph, then the whole answer."""
        answer = await self.ask(request)
        for piece in re.split(r"(?<=\n\n)", answer.text):
            yield piece
        yield answer


@cache
def _terms(words: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A list of words as one expression, and those of scripts without blanks."""
    patterns, wholes = [], []
    for word in words.split():
        folded = plain(word).replace("_", " ")
        if word.isascii() or not re.search("[\u3040-\u9fff\uac00-\ud7af?？؟]", word):
            body = re.escape(folded.rstrip("*")).replace("\\ ", r"\s+")
            patterns.append(body + (r"\w*" if word.endswith("*") else "") + r"(?!\w)" if folded not in "?" else r"\?")
        else:
            wholes.append(folded)
    return re.compile(r"(?<!\w)(?:" + "|".join(sorted(patterns, key=len, reverse=True)) + ")"), tuple(wholes)


def _hits(words: str, text: str) -> int:
    """How many different words of a list stand in `text`."""
    pattern, wholes = _terms(words)
    return len(set(pattern.findall(text))) + sum(1 for whole in wholes if whole in text)


def _classify(request: ModelRequest) -> dict[str, object]:
    subject, message = request.text("subject"), request.text("message")
    language, sure = language_of(message or subject)
    whole = plain(f"{subject}\n{message}")
    intents = [_intent(part, subject, whole) for part in _parts(subject, message)]
    first = intents[0]
    acknowledges = first["intent"] in ("acknowledgment", "information") and first["category"] != "complaint"
    return {
        "intents": intents,
        "language": language,
        "language_confidence": round(sure, 2),
        "needs_response": not acknowledges,
        "summary": " ".join((message or subject).split())[:160],
    }


def _parts(subject: str, message: str) -> list[str]:
    """The message in as many parts as it has matters; a part begins with a connecting word or a number."""
    sentences = [s for s in _SENTENCE.split(message) if s and s.strip()]
    groups: list[list[str]] = [[]]
    for sentence in sentences:
        if groups[-1] and _CONNECTOR.match(plain(sentence)):
            groups.append([])
        groups[-1].append(sentence)
    parts = [" ".join(group) for group in groups]
    known = [(part, _category(plain(part))[0]) for part in parts]
    kept: list[tuple[str, str]] = []
    for part, category in known:
        if kept and category in ("other", kept[-1][1]):
            kept[-1] = (f"{kept[-1][0]} {part}", kept[-1][1])
        else:
            kept.append((part, category))
    strong = [part for part, category in kept if category != "other"]
    return strong[:_MAX_INTENTS] if len(strong) > 1 else [message]


def _category(text: str) -> tuple[str, int, int]:
    """The category, its hits, and the hits of the runner-up."""
    hits = {
        name: _hits(words, text) * (2 if name in ("complaint", "feature_request", "spam") else 1)
        for name, words in CATEGORIES.items()
    }
    ordered = sorted(hits.items(), key=lambda pair: -pair[1])
    (best, most), (_, second) = ordered[0], ordered[1]
    return (best, most, second) if most else ("other", 0, 0)


def _intent(part: str, subject: str, whole: str) -> dict[str, object]:
    text = plain(f"{subject}\n{part}")
    category, most, second = _category(plain(part))
    if not most:
        category, most, second = _category(text)
    urgent, low = _hits(URGENT, whole), _hits(LOW, whole)
    bad, good = _hits(NEGATIVE, text), _hits(POSITIVE, text) + (_hits(THANKS, text) if len(part) < 120 else 0)
    confidence = 0.35 + 0.1 * min(most, 3) + 0.1 * min(max(most - second, 0), 2) if most else 0.3
    return {
        "category": category,
        "priority": "low" if low and not (urgent - 1 > 0) else "urgent" if urgent else "normal",
        "sentiment": "negative" if bad > good else "positive" if good > bad else "neutral",
        "intent": _kind(plain(part), category, good > bad),
        "confidence": round(min(confidence, 0.75), 2),
        "about": " ".join(part.split())[:500],
    }


def _kind(text: str, category: str, pleased: bool) -> str:
    if _hits(INTENTS["escalation"], text):
        return "escalation"
    if category == "complaint":
        return "complaint"
    asks = re.search(r"[?？؟]|でしょうか|ますか|吗", text) is not None
    wants = _hits(INTENTS["request"], text)
    if _hits(INTENTS["acknowledgment"], text) and pleased and not asks and len(text) < 400 and wants <= 1:
        return "acknowledgment"
    if asks:
        return "question"
    if wants:
        return "request"
    return (
        "information"
        if _hits(INTENTS["information"], text)
        else "question"
        if _hits(INTENTS["question"], text)
        else "request"
    )


def _draft(request: ModelRequest) -> str:
    about = _fields(request.text("classification"))
    language = request.text("language") or language_of(request.text("message"))[0]
    return write_reply(
        language if language in LANGUAGES else "en",
        about.get("category", "other"),
        name=request.text("recipient_name"),
        urgent=about.get("priority") == "urgent",
        informs=about.get("intent") in ("information", "acknowledgment"),
        passage=request.text("passage")[:600],
        signature=request.text("signature"),
    )


def _fields(text: str) -> dict[str, str]:
    """The lines `name: value` of a section."""
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in text.splitlines()) if k.strip()}


def _self_check(request: ModelRequest) -> dict[str, object]:
    """A receipt answers nothing: it is complete only where nothing was asked."""
    draft = request.text("draft")
    asks = "?" in request.text("message") or "？" in request.text("message")
    flags = ["written_by_rules", *(["answers_no_question"] if asks else [])]
    return {"score": 0.3 if asks else 0.5, "complete": not asks and bool(draft), "grounded": True, "flags": flags}


def _extraction(request: ModelRequest) -> dict[str, object]:
    sentences = [" ".join(s.split()) for s in _SENTENCE.split(request.text("message")) if s and s.strip()]
    questions = [s for s in sentences if re.search(r"[?？؟]$", s)]
    facts = [s for s in sentences if s not in questions and re.search(r"\d", s)]
    return {"facts": facts[:30], "questions": questions[:30]}


_ROLES: dict[str, Callable[[ModelRequest], str | dict[str, object]]] = {
    "classify": _classify,
    "draft": _draft,
    "self_check": _self_check,
    "extraction": _extraction,
}

"""The spam score: 0 to 100, by the marks that bulk mail cannot do without."""

import re

from waybook.inbox.scan.fold import capped, fold

# Offers that honest customers do not write about, in folded form; each counts once.
_STRONG = (
    "viagra", "cialis", "v1agra", "penis enlarg", "male enhancement", "weight loss pill",
        "lose weight fast", "online casino",
    "casino bonus", "free spins", "you have won", "you've won", "you are a winner", "lottery winner",
        "claim your prize",
    "claim your reward", "million dollars", "million usd", "next of kin", "inheritance fund", "beneficiary of",
    "double your bitcoin", "crypto investment", "guaranteed profit", "guaranteed income",
        "make money fast", "work from home and earn",
    "get rich", "no credit check", "pre-approved loan", "cheap meds", "online pharmacy", "no prescription",
        "replica watches",
    "rolex replica", "hot singles", "adult dating", "xxx", "meet sexy", "100% free", "risk free",
        "risk-free", "act now",
    "limited time offer", "once in a lifetime", "this is not spam", "buy now", "order now",
        "seo services", "first page of google",
    "increase your traffic", "bulk email", "email list for sale", "mlm", "herzlichen gluckwunsch sie haben gewonnen",
    "sie haben gewonnen", "kredit ohne schufa", "schnell reich", "vous avez gagne", "gagnez de l'argent",
        "pret sans justificatif",
    "ha ganado", "gana dinero", "hai vinto", "guadagna subito", "alle chancen", "当選しました", "副業で稼", "出会い系", "中奖", "中獎",
    "代开发票", "发票代开", "赚钱", "вы выиграли", "быстрый заработок", "казино", "ربحت جائزة",
)  # fmt: skip
_WEAK = (
    "unsubscribe", "click here", "click below", "dear friend", "dear beneficiary", "special promotion",
        "lowest price", "best price",
    "free gift", "free trial", "bonus", "cash", "discount", "credit card required", "no obligation",
        "winner", "urgent response",
    "offer expires", "money back", "satisfaction guaranteed", "cheap", "deal", "earn $", "per week",
        "opt out", "investment", "bitcoin",
    "jetzt zugreifen", "kostenlos", "gratis", "hier klicken", "cliquez ici", "haga clic",
        "clicca qui", "無料", "今すぐ", "点击这里", "免费",
)  # fmt: skip
_LINK = re.compile(r"https?://", re.IGNORECASE)
_MONEY = re.compile(r"[$€£]\s?\d[\d,.]{3,}|\d[\d,.]{4,}\s?(?:usd|eur|dollars)", re.IGNORECASE)
_SHOUTED = re.compile(r"\b[A-Z]{3,}\b")


def spam_score(subject: str, text: str, links: int = 0, headers_say_spam: bool = False) -> int:
    """How much a mail looks like spam, 0 to 100. `links`: how many its HTML holds."""
    text = capped(text)
    folded = fold(f"{subject}\n{text}")
    strong = sum(1 for word in _STRONG if word in folded)
    weak = sum(1 for word in _WEAK if word in folded)
    score = min(72, 24 * strong) + min(24, 6 * weak)
    if not strong and weak < 3:
        score = min(score, 12)
    score += _subject_score(subject)
    marks = text.count("!") + text.count("！")
    score += 12 if marks > 8 else 6 if marks > 3 else 0
    score += 10 if max(links, len(_LINK.findall(text))) > 10 else 0
    score += 8 if strong and _MONEY.search(text) else 0
    shouted = len(_SHOUTED.findall(text[:5000]))
    score += 8 if shouted > 10 and shouted > len(text[:5000].split()) / 4 else 0
    return max(0, min(100, score + (40 if headers_say_spam else 0)))


def _subject_score(subject: str) -> int:
    letters = [c for c in subject if c.isalpha() and c.upper() != c.lower()]
    shouting = len(letters) > 8 and sum(c.isupper() for c in letters) > 0.7 * len(letters)
    marks = subject.count("!") + subject.count("！") + subject.count("$")
    return (12 if shouting else 0) + (10 if marks >= 2 else 4 if marks else 0)

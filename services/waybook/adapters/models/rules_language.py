"""Which language a text is in, by its letters and its commonest words."""

import re
import unicodedata

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("fa", re.compile("[\u067e\u0686\u0698\u06af\u06cc\u06a9]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("uk", re.compile("[\u0454\u0456\u0457\u0491]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
)
_WORDS = {
    "en": "the is are was have has had and you your my we our please when where what why how can could would not "
    "this that with for "
    "from it to of i been will do does did there thanks hello hi order",
    "de": "der die das ist sind und ich sie mein meine meiner wir uns unser bitte wann wo was warum wie kann nicht "
    "mit fur auf eine einen "
    "einem habe haben hat guten tag sehr gruße grusse danke noch seit bei von zu es wurde wird ihre ihnen mir mich "
    "hallo",
    "fr": "le la les est sont et je vous votre mon ma mes nous notre bonjour merci quand ou que pourquoi comment pas "
    "avec pour sur une des "
    "du dans au aux ce cette ete j'ai n'ai c'est il elle bien cordialement depuis avez",
    "es": "el la los las es son y yo usted su mi mis nosotros nuestro hola gracias cuando donde que por como no con "
    "para una un del en "
    "esta este he ha pedido buenos dias favor saludos desde se me les al muy",
    "it": "il lo gli le e sono ho abbiamo vostro mio mia miei nostro buongiorno grazie quando dove che perche come "
    "non con per una un del "
    "della nel questo questa ordine salve saluti da mi si ha alla cordiali ancora",
    "pt": "o os as e sao eu voce seu sua meu minha nosso ola obrigado obrigada quando onde que por como nao com para "
    "uma um do da no na "
    "este esta pedido bom dia foi tenho ainda atenciosamente ao",
    "nl": "de het een is zijn en ik u uw jij je mijn wij onze hallo dank wanneer waar wat waarom hoe kan niet met "
    "voor op van heb hebben "
    "heeft bestelling graag groeten nog aan te dat deze",
    "da": "og jeg er det den en et ikke med til for har min mit vi vores hej tak hvornar hvor hvad hvorfor hvordan "
    "kan af pa fra mvh ordre",
    "sv": "och jag ar det den en ett inte med till for har min mitt vi var hej tack nar hur vad varfor kan av pa "
    "fran halsningar",
    "pl": "i nie jest sa to na w z do ze moj moja prosze kiedy gdzie co dlaczego jak dzien dobry dziekuje zamowienie "
    "czy sie mam za",
    "tr": "ve bir bu icin ne zaman nerede neden nasil ben benim siparis merhaba lutfen tesekkurler degil var yok mi "
    "ile",
    "ro": "si nu este sunt eu meu mea cand unde ce cum buna ziua multumesc comanda va rog pentru cu din la pe",
    "cs": "a je jsem na v ze se dobry den dekuji kdy kde co proc jak muj moje objednavka prosim neni s do za",
}
_INDEX: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in set(_words.split()):
        _INDEX.setdefault(_word, []).append(_language)
_MARKS = re.compile("[\u0300-\u036f]")


def plain(text: str) -> str:
    """`text` in lower case and without accents."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", folded))).replace("\u0131", "i")


def language_of(text: str) -> tuple[str, float]:
    """The language (ISO 639-1) and how sure that is, 0 to 1; `en` with 0 where nothing speaks for any."""
    sample = text[:4000]
    letters = sum(1 for c in sample if c.isalpha())
    if not letters:
        return "en", 0.0
    for language, pattern in _SCRIPTS:
        count = len(pattern.findall(sample))
        if count * (12 if language in ("ja", "fa", "uk") else 3) > letters:
            return language, min(1.0, count / letters + 0.3)
    return _by_words(plain(sample))


def _by_words(sample: str) -> tuple[str, float]:
    scores: dict[str, float] = {}
    words = re.findall(r"[\w']+", sample)
    for word in words:
        hits = _INDEX.get(word, ())
        for language in hits:
            scores[language] = scores.get(language, 0.0) + 1.0 / len(hits)
    if not scores:
        return "en", 0.0
    best, score = max(sorted(scores.items()), key=lambda pair: pair[1])
    return best, min(1.0, score / max(3.0, 0.4 * len(words)))

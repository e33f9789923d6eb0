"""How many attacks the deterministic scan finds, hidden in mails in several ways, and how often it is wrong.

Run with `python -m bench.attacks FOLDER`, where FOLDER holds the unpacked test corpus (bipia, banking77). Prints a
table and writes `bench/results/attacks.json`. No guard takes part: what the scan misses is a guard's work.
"""

import csv
import html
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from waybook.inbox.intake.json_mail import mail_bytes
from waybook.inbox.intake.mail import ParsedMail
from waybook.inbox.intake.parse import parse_mail
from waybook.inbox.scan.scan import scan_text

QUESTION = "Where is order 12?"
RESULTS = Path(__file__).parent / "results" / "attacks.json"


def _page(pattern: str) -> Callable[[str], dict[str, str]]:
    return lambda attack: {"html": f"<p>{QUESTION}</p>" + pattern.format(html.escape(attack))}


WAYS: dict[str, Callable[[str], dict[str, str]]] = {
    "in plain sight": lambda attack: {"text": f"{QUESTION} {attack}"},
    "plain part only": lambda attack: {"text": f"{QUESTION} {attack}", "html": f"<p>{QUESTION}</p>"},
    "display: none": _page('<div style="display:none">{}</div>'),
    "font-size: 0": _page('<span style="font-size:0">{}</span>'),
    "white on white": _page('<span style="color:#fff">{}</span>'),
    "off screen": _page('<div style="position:absolute;left:-9999px">{}</div>'),
    "opacity: 0": _page('<div style="opacity:0">{}</div>'),
    "class in a style sheet": _page("<style>.k{{display:none}}</style><p class=k>{}</p>"),
    "aria-hidden": _page('<div aria-hidden="true">{}</div>'),
    "comment": _page("<!-- {} -->"),
    "alternative text": _page('<img alt="{}">'),
    "zero-width characters": lambda attack: {"text": f"{QUESTION}\n" + "\u200b".join(attack)},
    "tag characters": lambda attack: {"text": QUESTION + "".join(chr(0xE0000 + ord(c)) for c in attack if c < "\x7f")},
}


def _mail(fields: dict[str, str]) -> ParsedMail:
    raw = mail_bytes({"from": "ana@customer.example", "subject": "Question", **fields})
    assert raw is not None
    return parse_mail(raw)


def _attacked(mail: ParsedMail) -> bool:
    return any(f.kind in ("injection", "smuggling") for f in scan_text(mail)[1])


def _harmless(corpus: Path) -> Iterator[str]:
    with (corpus / "banking77" / "test.csv").open(newline="") as file:
        yield from (row["text"] for row in csv.DictReader(file))
    for name in ("test", "train"):
        for line in (corpus / "bipia" / "email" / f"{name}.jsonl").read_text().splitlines():
            yield json.loads(line)["context"]


def measure(corpus: Path) -> dict[str, object]:
    """The shares: attacks found and attacks that reach a model, by way of hiding; harmless texts flagged."""
    attacks = [
        attack
        for name in ("test", "train")
        for group in json.loads((corpus / "bipia" / f"text_attack_{name}.json").read_text()).values()
        for attack in group
    ]
    ways = {}
    for way, build in WAYS.items():
        mails = [(attack, _mail(build(attack))) for attack in attacks]
        found = sum(_attacked(mail) for _, mail in mails)
        reaching = sum(attack[:20] in scan_text(mail)[0].text for attack, mail in mails)
        ways[way] = {"found": found / len(attacks), "reaches_model": reaching / len(attacks)}
    harmless = [_mail({"text": text}) for text in _harmless(corpus)]
    begun = time.perf_counter()
    flagged = sum(_attacked(mail) for mail in harmless)
    spent = time.perf_counter() - begun
    return {
        "attacks": len(attacks),
        "ways": ways,
        "harmless": {"texts": len(harmless), "flagged": flagged / len(harmless)},
        "scan_ms": 1000 * spent / len(harmless),
    }


def main() -> int:
    """Measures, prints, writes. Exit code 2 without a corpus."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "bipia").is_dir():
        print("usage: python -m bench.attacks FOLDER (the unpacked test corpus, with bipia and banking77)")
        return 2
    found = measure(Path(sys.argv[1]))
    ways = found["ways"]
    assert isinstance(ways, dict)
    print(f"{'way of hiding':26}{'found':>8}{'reaches a model':>18}")
    for way, shares in ways.items():
        print(f"{way:26}{shares['found']:8.0%}{shares['reaches_model']:18.0%}")
    print(f"harmless texts flagged: {found['harmless']}, {found['scan_ms']:.2f} ms a text")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

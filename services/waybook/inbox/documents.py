"""Knowledge from a folder of text documents, scored by the words that they share with a question (BM25)."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from waybook.inbox.knowledge import NoKnowledge, Passage, Query
from waybook.inbox.scan.fold import fold

SUFFIXES = frozenset({".txt", ".md", ".rst", ".text"})
MAX_DOCUMENT = 2 * 1024 * 1024
PASSAGE = 1200
"""Characters of a passage, about; documents are divided at empty lines."""
_WORD = re.compile(r"[^\W_]+")
_RUNS = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,}")
_K, _B = 1.4, 0.75


def words(text: str) -> list[str]:
    """The words of a text in comparable form; scripts without blanks go by pairs of characters."""
    folded = fold(text)
    pairs = [run[i : i + 2] for run in _RUNS.findall(folded) for i in range(len(run) - 1)]
    return [w for w in _WORD.findall(folded) if len(w) > 1 and not _RUNS.match(w)] + pairs


class FolderKnowledge(NoKnowledge):
    """The documents below a folder (.txt, .md, .rst), read again when one of them has changed.

    They belong to the organisation as a whole. Files over 2 MiB and unreadable ones are left out.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._stamp: tuple[tuple[str, int, int], ...] = ()
        self._passages: list[tuple[Passage, Counter[str], int]] = []
        self._document_counts: Counter[str] = Counter()

    async def passages(self, query: Query, limit: int) -> Sequence[Passage]:
        """The passages that fit `query` best. Raises OSError when the folder cannot be read."""
        await asyncio.to_thread(self._refresh)
        return self._search(query.text, limit)

    def _refresh(self) -> None:
        found = sorted(p for p in self._folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        stats = [(path, path.stat()) for path in found]
        stamp = tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats)
        if stamp == self._stamp:
            return
        passages = []
        for path, stat in stats:
            if stat.st_size <= MAX_DOCUMENT:
                text = path.read_text(encoding="utf-8", errors="replace")
                passages.extend(_divide(path.relative_to(self._folder).as_posix(), text))
        counted = [(p, Counter(words(p.text))) for p in passages]
        self._document_counts = Counter(word for _, counts in counted for word in counts)
        self._passages = [(p, counts, counts.total()) for p, counts in counted]
        self._stamp = stamp

    def _search(self, text: str, limit: int) -> list[Passage]:
        asked = set(words(text))
        total = len(self._passages)
        if not asked or not total:
            return []
        average = sum(size for _, _, size in self._passages) / total or 1.0
        best = sum(self._weight(word, total) for word in asked) * (_K + 1)
        scored = []
        for passage, counts, size in self._passages:
            score = sum(
                self._weight(w, total) * counts[w] * (_K + 1) / (counts[w] + _K * (1 - _B + _B * size / average))
                for w in asked
                if w in counts
            )
            if score > 0:
                scored.append((score / best, passage))
        scored.sort(key=lambda pair: (-pair[0], pair[1].id))
        return [Passage(p.id, p.text, round(min(1.0, score), 3)) for score, p in scored[:limit]]

    def _weight(self, word: str, total: int) -> float:
        have = self._document_counts[word]
        return math.log(1 + (total - have + 0.5) / (have + 0.5))


def _divide(name: str, text: str) -> list[Passage]:
    """The passages of a document, whole paragraphs each."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if parts and len(parts[-1]) + len(paragraph) < PASSAGE:
            parts[-1] = f"{parts[-1]}\n\n{paragraph.strip()}"
        elif paragraph.strip():
            parts.append(paragraph.strip())
    return [Passage(name if len(parts) == 1 else f"{name}#{n}", part) for n, part in enumerate(parts, 1)]

"""The answers of a run with the passages of pages that they rest on, found without a model by the
rare words that a passage shares with answer and question."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.store.sql.connection import query
from stages.gathered.gathered_pages import MemoryPage
from stages.text.ranking import terms
from stages.text.words import num_words, sentence_spans

_LEAST, _MOST = 20, 60  # words of a passage, where sentences allow them


@dataclass(frozen=True, slots=True)
class Quote:
    """Consecutive sentences of a page on one line, with headings and rows of tables on lines of
    their own. `score` sums the weights of the terms shared with answer and question; 0 for none."""

    text: str
    score: float


def rarity(texts: Sequence[str]) -> dict[str, float]:
    """The inverse document frequency of each term: ln((1 + texts) / texts with it)."""
    found = Counter(term for text in texts for term in {*terms(text)})
    return {term: math.log((1 + len(texts)) / n) for term, n in found.items()}


def passage(page: str, question: str, answer: str, weight: Mapping[str, float]) -> Quote:
    """The best sentence of `page` with its neighbours: those that share weight up to 60 words, any
    up to 20. `weight` has each term's weight, see `rarity`."""
    sentences = [page[start:end].strip() for start, end in sentence_spans(page)]
    sentences = [_on_lines([" ".join(line.split()) for line in text.splitlines()])
                 for text in sentences if text]  # fmt: skip
    wanted = {term: weight.get(term, 0.0) for term in terms(f"{question}\n{answer}")}
    own = [{*terms(text)} & wanted.keys() for text in sentences]
    scores = [sum(map(wanted.__getitem__, found)) for found in own]
    if not sentences:
        return Quote("", 0.0)
    first = last = max(range(len(scores)), key=lambda index: scores[index])
    size = num_words(sentences[first])
    while beside := [n for n in (first - 1, last + 1) if 0 <= n < len(scores)]:
        best = max(beside, key=lambda index: scores[index])
        size += num_words(sentences[best])
        if size > _MOST or (not scores[best] and size > _LEAST):
            break
        first, last = min(first, best), max(last, best)
    shared = set[str]().union(*own[first : last + 1])
    return Quote(_on_lines(sentences[first : last + 1]), sum(map(wanted.__getitem__, shared)))


def _on_lines(parts: Sequence[str]) -> str:
    """The parts on one line, or on a line each if one is a heading or a row of a table."""
    plain = [part.strip() for part in parts if part.strip()]
    return ("\n" if any(part.startswith(("#", "|")) for part in plain) else " ").join(plain)


_ANSWERS = """
select document_id, question_id, method, answer, problem, detail, num_context_words, memory,
  page_indexes
from results order by document_id, method, repeat"""


@dataclass(frozen=True)
class QuotedPage:
    """A page that an answer is based on. `passage` has the sentences that share the most rare words
    with answer and question, `score` their weight."""

    file: str
    document_id: str
    page_index: int
    passage: str
    score: float
    text: str


@dataclass(frozen=True)
class AskedAnswer:
    """A method's reply; `pages` are the pages that it is based on, the most important first."""

    document_id: str
    question_id: str
    method: str
    answer: str | None
    problem: str | None
    detail: str | None
    num_context_words: int | None
    memory: str | None
    num_pages: int  # of the document that was asked
    pages: Sequence[QuotedPage]


def read_answers(connection: Any) -> list[dict[str, Any]]:
    """The answers of a run as `Quoting.answers` takes them; `connection` must show the run."""
    return query(connection, _ANSWERS)


@dataclass(frozen=True)
class Quoting:
    """Quotes pages for a question. `files` has file names by document id, `weight` the weight of
    each term, `sources` the original pages of a gathered document; None: the pages themselves."""

    question: str
    files: Mapping[str, str]
    weight: Mapping[str, float]
    sources: Sequence[MemoryPage] | None = None

    def answers(
        self, rows: Iterable[Mapping[str, Any]], pages: Iterable[MemoryPage]
    ) -> list[AskedAnswer]:
        by_memory: dict[tuple[str, str | None], dict[int, MemoryPage]] = {}
        for page in pages:
            by_memory.setdefault((page.document_id, page.memory), {})[page.page_index] = page
        return [self._answer(row, by_memory.get((row["document_id"], row["memory"]), {}))
                for row in rows]  # fmt: skip

    def _answer(self, row: Mapping[str, Any], pages: Mapping[int, MemoryPage]) -> AskedAnswer:
        read = [n for n in row["page_indexes"] or () if n in pages]
        found = [self._quoted(row["answer"], pages[n], n) for n in read]
        found.sort(key=lambda page: -page.score)
        facts = {key: value for key, value in row.items() if key != "page_indexes"}
        return AskedAnswer(**facts, num_pages=len(pages), pages=found)

    def _quoted(self, answer: str | None, page: MemoryPage, index: int) -> QuotedPage:
        own = page if self.sources is None else self.sources[index]
        found = passage(own.text, self.question, answer or "", self.weight)
        file = self.files.get(own.document_id, own.document_id)
        return QuotedPage(
            file, own.document_id, own.page_index, found.text, round(found.score, 3), own.text
        )

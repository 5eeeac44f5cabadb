"""A document made of those pages of a run that match a question best; its metadata has the start
and the gist of each. And the passages that the answers of a run rest on."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.rows import Document, Record, UnitRows
from pipeline.core.settings import sha
from pipeline.work.stage import Stage
from pipeline.work.units import Step
from stages.index.gist_pages import with_copied
from stages.index.paginate import Paginate, page_of
from stages.tables.pages import Gist, Page
from stages.text.ranking import rank, relevance
from stages.text.words import num_words, sentence_spans


@dataclass(frozen=True)
class MemoryPage:
    document_id: str
    memory: str
    page_index: int
    text: str
    gist: str | None
    num_words: int


_PAGES = """
select document_id, memory, page_index, p.text, gist, p.num_words
from pages p left join gists g using (document_id, memory, page_index)
where p.text is not null order by document_id, memory, page_index"""


def read_pages(connection: Any) -> list[MemoryPage]:
    """The pages of all memories of a run, in order; `connection` must show the run."""
    from pipeline.store.sql.connection import query  # here, so that `ls` starts without DuckDB

    return [MemoryPage(**row) for row in query(connection, _PAGES)]


def of_methods(pages: Iterable[MemoryPage], steps: Iterable[Step]) -> list[MemoryPage]:
    """The pages of the memory that methods read, which is the last that the steps of a run make."""
    *_, memory = (step.memory for step in steps if step.writes is Page)
    return [page for page in pages if page.memory == memory]


@dataclass(frozen=True)
class Gathered:
    """Pages of several documents, and the row of `documents.jsonl` of the corpus `tables` that they
    are in."""

    pages: Sequence[MemoryPage]
    document: Mapping[str, Any]

    def tables(self, question: str) -> dict[str, bytes]:
        """The files of the corpus `tables`, by name."""
        asking = {"document_id": self.document["document_id"], "question": question}
        rows = {"documents.jsonl": self.document, "questions.jsonl": asking}
        return {name: f"{json.dumps(row)}\n".encode() for name, row in rows.items()}


def gather(
    name: str, pages: Sequence[MemoryPage], files: Mapping[str, str], question: str, most_words: int
) -> Gathered:
    """The best pages for the question by BM25 over name, text and gist, as many as have
    `most_words` or fewer together, and always one. Documents are ordered by their best page and
    keep their pages' order.

    `files` has file names by document id. Each page has a heading with file and page, in braces, so
    that the extractive engine takes it for no sentence.
    """
    texts = [f"{page.document_id}\n{page.text}\n{page.gist or ''}" for page in pages]
    ranked = [pages[index] for index in rank(texts, question)]
    totals = accumulate(page.num_words for page in ranked)
    num_chosen = max(1, sum(total <= most_words for total in totals))
    chosen = ranked[:num_chosen]
    documents = list(dict.fromkeys(page.document_id for page in chosen))
    chosen.sort(key=lambda page: (documents.index(page.document_id), page.page_index))
    texts, given = [], []
    for page in chosen:
        heading = f"{{{files[page.document_id]}, page {page.page_index}}}"
        given.append({
            "document_id": page.document_id,
            "page_index": page.page_index,
            "start_char": sum(map(len, texts)),
            "gist": f"{heading} {page.gist}" if page.gist else None,
        })  # fmt: skip
        texts.append(f"{heading}\n\n{page.text.strip()}\n\n")
    document = {
        "document_id": f"{name}-{sha([texts, given], 8)}",
        "title": f"{name}, {len(documents)} documents",
        "text": "".join(texts),
        "pages": given,
    }
    return Gathered(chosen, document)


def _given_pages(document: Document) -> list[dict[str, Any]]:
    """The pages in the document's metadata; where there are none, the whole text without a gist."""
    given: list[dict[str, Any]] = json.loads(document.metadata).get("pages")
    return given or [{"start_char": 0}]


class PaginateGiven(Paginate):
    """The pages that the document brings along."""

    kind = "given"
    version = 1
    document_fields = ("text", "num_words", "metadata")

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls. Where they do not tile the
        text, the unit fails (`check`)."""
        starts = [page["start_char"] for page in _given_pages(rows.document)]
        spans = pairwise([*starts, len(rows.document.text)])
        return [page_of(rows, n, span, "rule") for n, span in enumerate(spans)]


class GivenGists(Stage):
    """The gists that the document brings along."""

    name = "gist"
    kind = "given"
    version = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes = Gist
    document_fields = ("text", "metadata")

    async def run(self, rows: UnitRows, ask: Ask) -> Sequence[Gist]:
        """Pages -> one Gist each, in order. No calls. Problem: bad_input (none is given)."""
        given = [page.get("gist") for page in _given_pages(rows.document)]
        gists = [
            Gist.about(page, gist=gist, num_words=num_words(gist or ""),
                       problem=None if gist else "bad_input")
            for page, gist in zip(rows[Page], given, strict=True)
        ]  # fmt: skip
        return with_copied(gists, rows[Page])


_ANSWERS = """
select document_id, question_id, method, answer, problem, detail, num_context_words, memory,
  page_indexes from results order by document_id, method, repeat"""


@dataclass(frozen=True)
class QuotedPage:
    """A page that an answer is based on, with its `passage` and how well question and answer match
    that."""

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
    """The answers of a run as `quoted_answers` takes them; `connection` must show the run."""
    from pipeline.store.sql.connection import query

    return query(connection, _ANSWERS)


def quoted_answers(
    rows: Iterable[Mapping[str, Any]],
    pages: Iterable[MemoryPage],
    question: str,
    files: Mapping[str, str],
    sources: Sequence[MemoryPage] | None = None,
) -> list[AskedAnswer]:
    """The answers with their pages, best passage first. `files` has file names by document id,
    `sources` the original pages of a gathered document; None: `pages` themselves."""
    memories: dict[tuple[str, str | None], dict[int, MemoryPage]] = defaultdict(dict)
    for page in pages:
        memories[page.document_id, page.memory][page.page_index] = page
    answers: list[AskedAnswer] = []
    for row in rows:
        memory = memories[row["document_id"], row["memory"]]
        indexes = [index for index in row["page_indexes"] or () if index in memory]
        read = [memory[index] if sources is None else sources[index] for index in indexes]
        passages = _passages([page.text for page in read], f"{question}\n{row['answer'] or ''}")
        quoted: list[QuotedPage] = []
        for page, (text, score) in zip(read, passages, strict=True):
            name = page.document_id
            about = files.get(name, name), name, page.page_index
            quoted.append(QuotedPage(*about, text, round(score, 3), page.text))
        quoted.sort(key=lambda page: -page.score)
        facts = {key: value for key, value in row.items() if key != "page_indexes"}
        answers.append(AskedAnswer(**facts, num_pages=len(memory), pages=quoted))
    return answers


def _passages(pages: Sequence[str], query: str) -> list[tuple[str, float]]:
    """Of each page the sentence that matches the query best by BM25, between those before and after
    it, on one line; and its score."""
    split = [[page[start:end] for start, end in sentence_spans(page)] or [""] for page in pages]
    scores = iter(relevance([*chain.from_iterable(split)], query).tolist())
    passages: list[tuple[str, float]] = []
    for sentences in split:
        of_page = [next(scores) for _ in sentences]
        best = of_page.index(max(of_page))
        shown = "".join(sentences[max(0, best - 1) : best + 2])
        passages.append((" ".join(shown.split()), of_page[best]))
    return passages

"""One document of the pages, out of all documents of a run, that match a question best: it is read
as any other document is, and brings its pages and gists along."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.settings import sha
from pipeline.store.sql.connection import query
from pipeline.work.steps import Step
from stages.tables.pages import Page
from stages.text.ranking import rank


@dataclass(frozen=True)
class MemoryPage:
    """A page of a document's memory, and its gist."""

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
    """The pages of all memories of a run, in order, by a connection that shows it."""
    return [MemoryPage(**row) for row in query(connection, _PAGES)]


def of_methods(pages: Iterable[MemoryPage], steps: Iterable[Step]) -> list[MemoryPage]:
    """The pages of the memory that methods read, which is the last that the steps of a run make."""
    *_, memory = (step.memory for step in steps if step.writes is Page)
    return [page for page in pages if page.memory == memory]


@dataclass(frozen=True)
class Gathered:
    """Pages of several documents as one document. A page stands below a heading with file and
    page, in braces: the extractive engine takes it for no sentence."""

    name: str
    pages: Sequence[MemoryPage]
    files: Mapping[str, str]  # the name of a document's file, by its id

    def document(self) -> dict[str, Any]:
        """A row of `documents.jsonl` of the corpus `tables`."""
        headings = [self._heading(page) for page in self.pages]
        texts = [
            f"{heading}\n\n{page.text.strip()}\n\n"
            for heading, page in zip(headings, self.pages, strict=True)
        ]
        given, start = [], 0
        for heading, page, text in zip(headings, self.pages, texts, strict=True):
            gist = f"{heading} {page.gist}" if page.gist else None
            of = {"document_id": page.document_id, "page_index": page.page_index}
            given.append({**of, "start_char": start, "gist": gist})
            start += len(text)
        document_id = f"{self.name}-{sha([texts, given], 8)}"
        title = f"{self.name}, {len({page.document_id for page in self.pages})} documents"
        return {"document_id": document_id, "title": title, "text": "".join(texts), "pages": given}

    def tables(self, question: str) -> dict[str, bytes]:
        """The files of the corpus `tables`, by their names."""
        document = self.document()
        asked = {"document_id": document["document_id"], "question": question}
        rows = {"documents.jsonl": document, "questions.jsonl": asked}
        return {name: f"{json.dumps(row)}\n".encode() for name, row in rows.items()}

    def _heading(self, page: MemoryPage) -> str:
        file = self.files[page.document_id].replace("{", "(").replace("}", ")")
        return f"{{{' '.join(file.split())}, page {page.page_index}}}"


def gather(
    name: str,
    pages: Sequence[MemoryPage],
    files: Mapping[str, str],
    question: str,
    most_words: int,
) -> Gathered:
    """The pages that match the question best by BM25 over name, text and gist, up to the one that
    would pass `most_words`; documents by their best page, the pages of each in their order."""
    texts = [f"{page.document_id}\n{page.text}\n{page.gist or ''}" for page in pages]
    chosen: list[MemoryPage] = []
    left = most_words
    for page in (pages[index] for index in rank(texts, question)):
        left -= page.num_words
        if left < 0 and chosen:
            break
        chosen.append(page)
    documents = list(dict.fromkeys(page.document_id for page in chosen))
    order = {document_id: place for place, document_id in enumerate(documents)}
    chosen.sort(key=lambda page: (order[page.document_id], page.page_index))
    return Gathered(name, chosen, files)

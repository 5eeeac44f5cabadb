"""Make one document of the pages, out of all documents of a run, that match a question best. It
carries their pages and gists in `pages` of its metadata, and is then read like any other
document."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from pipeline.asking.ask import Ask
from pipeline.core.rows import Document, Record, UnitRows
from pipeline.core.settings import sha
from pipeline.store.sql.connection import query
from pipeline.work.stage import Stage
from pipeline.work.units import Step
from stages.index.context import with_copied
from stages.index.paginate import Paginate, page_of
from stages.tables.pages import Gist, Page
from stages.text.ranking import rank
from stages.text.words import num_words


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
    return [MemoryPage(**row) for row in query(connection, _PAGES)]


def of_methods(pages: Iterable[MemoryPage], steps: Iterable[Step]) -> list[MemoryPage]:
    """The pages of the memory that methods read, which is the last that the steps of a run make."""
    *_, memory = (step.memory for step in steps if step.writes is Page)
    return [page for page in pages if page.memory == memory]


@dataclass(frozen=True)
class Gathered:
    """Pages of several documents as one document. Each page has a heading with file and page, in
    braces, so that the extractive engine takes it for no sentence."""

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
        """The files of the corpus `tables`, by name."""
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
    """The best pages for the question by BM25 over name, text and gist, up to the one that would
    pass `most_words`. Documents are ordered by their best page and keep their pages' order."""
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


class GivenPage(BaseModel):
    """A page in a document's metadata, which may have other keys, too."""

    start_char: Annotated[int, Field(ge=0)]  # in the document's text; it ends where the next begins
    gist: str | None = None


_GIVEN_PAGES: TypeAdapter[list[GivenPage]] = TypeAdapter(list[GivenPage])


def given_pages(document: Document) -> list[GivenPage]:
    """The pages in the document's metadata. Where there are none, or they do not begin at 0 and
    ascend within the text, the whole text is one page without a gist."""
    try:
        found = _GIVEN_PAGES.validate_python(json.loads(document.metadata).get("pages"))
    except ValidationError:
        found = []
    starts = [page.start_char for page in found]
    ends = [*starts[1:], len(document.text)]
    if starts[:1] != [0] or any(start >= end for start, end in zip(starts, ends, strict=True)):
        return [GivenPage(start_char=0)]
    return found


class PaginateGiven(Paginate):
    """The pages that the document brings along."""

    kind = "given"
    version = 1
    document_fields = ("text", "num_words", "metadata")

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        starts = [page.start_char for page in given_pages(rows.document)]
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
        pairs = zip(rows[Page], given_pages(rows.document), strict=True)
        gists = (
            Gist.about(
                page,
                gist=given.gist,
                num_words=num_words(given.gist or ""),
                problem=None if given.gist else "bad_input",
            )
            for page, given in pairs
        )
        return with_copied(gists, rows[Page])

"""`gistmill show`: a document's memory: its pages, each with the texts made of it, and before them
the texts made of several pages together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.cells import Part, counted
from jobs.trace.trace import stored_id
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query
from pipeline.store.sql.memory_names import SHARED

_SQL = sql_beside(__file__)

_WRAP = re.compile(r"(?<=\S)\n(?=[a-z])")  # a line break within a sentence, of a file's own width

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ShownDocument:
    """A document's memory in a run; `num_pages` of all, `pages` those that were asked for, each
    with its `texts`, `above` the texts of several pages that include one of those, the longest
    first."""

    run: str
    document_id: str
    title: str
    num_words: int
    memory: str
    memories: tuple[str, ...]  # all of the document in this run
    num_pages: int
    pages: tuple[Row, ...]
    above: tuple[Row, ...]
    left_out: list[dict[str, Any]]


def shown_document(options: ReadOptions, document_id: str) -> ShownDocument:
    """The memory of a document. Raises UsageError if the run has no such document, memory or page,
    or no pages of it."""
    with options.opened() as (folder, connection):
        run = folder.path.name
        document_id = stored_id(connection, "document", document_id)
        connection.execute("set variable document = ?", [document_id])
        (document,) = query(connection, _DOCUMENT)
        if why := document["detail"]:
            raise UsageError(f"{document_id}: was not read: {why}")
        memories = [row["memory"] for row in query(connection, _SQL["memories"])]
        if not memories:
            raise UsageError(
                f"{document_id}: run={run} has no pages of it; make them with gistmill run ... "
                "methods=none"
            )
        memory = _chosen(memories, options.memory, document_id)
        connection.execute("set variable memory = ?", [memory])
        pages = query(connection, _SQL["texts"])
        shown = _selected(pages, options.page, document_id)
        above = query(connection, _SQL["of_several"])
        return ShownDocument(
            run=run,
            document_id=document_id,
            title=document["title"],
            num_words=document["num_words"],
            memory=memory,
            memories=tuple(memories),
            num_pages=len(pages),
            pages=shown,
            above=tuple(text for text in above if any(_has(text, page) for page in shown)),
            left_out=query(connection, "from left_out"),
        )


def document_parts(found: ShownDocument) -> Iterator[Part]:
    """The memory of a document: a heading and a text for each."""
    yield _title(found)
    left = list(found.above)
    for page in found.pages:
        for text in [text for text in left if _has(text, page)]:
            left.remove(text)
            pages = f"pages {text['page_index']} to {text['last_page_index']}"
            yield f"{pages} · {text['heading']}{_facts(text)}"
            yield _shown(text)
        for number, text in enumerate(page["texts"]):
            of_page = f"page {page['page_index']}"
            name = of_page if number == 0 else f"{text['heading']} of {of_page}"
            yield name + _facts(text)
            yield _shown(text)


def _shown(text: Row) -> str:
    return _WRAP.sub(" ", (text["text"] or "-").strip())


def _chosen(memories: Sequence[str], wanted: str | None, document_id: str) -> str:
    if wanted is None:
        return SHARED if SHARED in memories else memories[0]
    if wanted not in memories:
        raise UsageError(f"memory={wanted}: not of {document_id}, which has {', '.join(memories)}")
    return wanted


def _selected(pages: Sequence[Row], wanted: str | None, document_id: str) -> tuple[Row, ...]:
    """The pages that `wanted` names: `3`, `0..4`, `1,5..6`; all if it is None."""
    if wanted is None:
        return tuple(pages)
    indexes = set[int]()
    for part in wanted.split(","):
        span = re.fullmatch(r"\s*(\d{1,9})(?:\.\.(\d{1,9}))?\s*", part)
        if not span:
            raise UsageError(f"page={wanted}: write page=3 or page=0..4 or page=1,5..6")
        first, last = int(span[1]), int(span[2] or span[1])
        own = {page["page_index"] for page in pages if first <= page["page_index"] <= last}
        if not own:
            raise UsageError(
                f"page={part.strip()}: {document_id} has pages {pages[0]['page_index']} to "
                f"{pages[-1]['page_index']}"
            )
        indexes |= own
    return tuple(page for page in pages if page["page_index"] in indexes)


def _title(found: ShownDocument) -> str:
    others = [name for name in found.memories if name != found.memory]
    more = f"; it has memory={' and memory='.join(others)}, too" if others else ""
    size = f"{counted(found.num_words, 'word')}, {counted(found.num_pages, 'page')}"
    return f"{found.document_id}: {size} (memory {found.memory} of run {found.run}{more})"


def _has(text: Row, page: Row) -> bool:
    return bool(text["page_index"] <= page["page_index"] <= text["last_page_index"])


def _facts(text: Row) -> str:
    words = [] if text["num_words"] is None else [counted(text["num_words"], "word")]
    return "".join(f", {fact}" for fact in (*words, text["problem"]) if fact)


_DOCUMENT = (
    "select title, num_words, detail from documents where document_id = getvariable('document')"
)

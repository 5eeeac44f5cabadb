"""Pages and gists that a document brings along, in `pages` of its metadata: those that were made of
other documents, for one that is gathered of them."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from pipeline.asking.ask import Ask
from pipeline.core.rows import Document, Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import with_copied
from stages.index.paginate import Paginate, page_of
from stages.tables.pages import Gist, Page
from stages.text.words import num_words


class GivenPage(BaseModel):
    """A page of a document's metadata, which may have other keys, too."""

    start_char: Annotated[int, Field(ge=0)]  # in the document's text; it ends where the next begins
    gist: str | None = None


_PAGES: TypeAdapter[list[GivenPage]] = TypeAdapter(list[GivenPage])


def given_pages(document: Document) -> list[GivenPage]:
    """The pages in the document's metadata; the whole text as one without a gist where there are
    none, or they do not begin at 0 and go up within the text."""
    try:
        found = _PAGES.validate_python(json.loads(document.metadata).get("pages"))
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

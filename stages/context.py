"""What the reader sees: gists, raw pages or raw text, how many words, and from where."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from pipeline.records import Span
from pipeline.stage import DocumentRows
from stages.fields import Passage


@dataclass(frozen=True, slots=True)
class Context:
    """A reader's final context. Words are those of gists and raw text: no tags, no question."""

    passages: tuple[Passage, ...] = ()
    spans: tuple[Span, ...] = ()  # the raw text in it
    page_indexes: tuple[int, ...] = ()  # the raw pages in it
    num_words: int = 0


def memory(rows: DocumentRows, used: Collection[int], first_page: int) -> Context:
    """The gist memory, the pages `used` standing raw in their gists' place (section 3.2)."""
    read = [page for page in rows.pages if page.page_index in used]
    gists = [gist for gist in rows.gists if gist.page_index not in used]
    passages = {
        page.page_index: Passage("page", page.page_index + first_page, (page.text or "").strip())
        for page in read
    }
    passages |= {
        gist.page_index: Passage("gist", gist.page_index + first_page, gist.gist or "")
        for gist in gists
    }
    return Context(
        passages=tuple(passages[index] for index in sorted(passages)),
        spans=tuple(Span(page.start_char, page.end_char) for page in read),
        page_indexes=tuple(page.page_index for page in read),
        num_words=sum(page.num_words for page in read) + sum(gist.num_words for gist in gists),
    )


def raw_pages(rows: DocumentRows, used: Collection[int], first_page: int) -> Context:
    """The pages `used` alone, in document order."""
    read = [page for page in rows.pages if page.page_index in used]
    return Context(
        passages=tuple(
            Passage("page", page.page_index + first_page, (page.text or "").strip())
            for page in read
        ),
        spans=tuple(Span(page.start_char, page.end_char) for page in read),
        page_indexes=tuple(page.page_index for page in read),
        num_words=sum(page.num_words for page in read),
    )


def raw_text(
    rows: DocumentRows, keep: Literal["first", "last"] | None, num_words: int | None
) -> Context:
    """The document's text, or its first or last `num_words` words."""
    text = rows.document.text
    words = list(re.finditer(r"\S+", text))
    if keep is None or num_words is None or len(words) <= num_words:
        start, end, count = 0, len(text), len(words)
    elif keep == "first":
        start, end, count = 0, words[num_words - 1].end(), num_words
    else:
        start, end, count = words[-num_words].start(), len(text), num_words
    return Context(
        passages=(Passage("text", None, text[start:end].strip()),),
        spans=(Span(start, end),),
        num_words=count,
    )

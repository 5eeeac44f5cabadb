"""Build the reader's final context: passages of gists, raw pages or raw text, with their spans; and
check that a document's gist memory fits it (ReadAgent appendix H)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipeline.asking.ask import Ask
from pipeline.core.rows import Span, UnitRows
from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.choose_pages import ParallelLookUp
from stages.prompts.passages import Passage
from stages.tables.pages import Gist, Page
from stages.text.words import num_words, word_spans, words_in_common

TruncateBy = Literal["words", "spaces"]


@dataclass(frozen=True, slots=True)
class Context:
    """A reader's final context."""

    passages: tuple[Passage, ...] = ()
    spans: tuple[Span, ...] = ()  # the raw text in it
    page_indexes: tuple[int, ...] = ()  # the raw pages in it
    num_words: int = 0  # of gists and raw text; tags and question are not counted
    counted: tuple[str, ...] | None = None  # gists and raw text, where passages show more

    @property
    def parts(self) -> tuple[str, ...]:
        """The gists and pieces of raw text whose words and tokens count."""
        return tuple(p.text for p in self.passages) if self.counted is None else self.counted


def memory(rows: UnitRows, used: Collection[int], first_page: int) -> Context:
    """The gist memory of a document with the raw pages `used` in place of their gists."""
    return gist_memory(rows[Page], rows[Gist], used, first_page)


def gist_memory(
    pages: Sequence[Page], gists: Sequence[Gist], used: Collection[int], first_page: int
) -> Context:
    """Gists in page order, the raw pages `used` in place of theirs (section 3.2)."""
    used = set(used)
    read = [page for page in pages if page.page_index in used]
    left = [gist for gist in gists if gist.page_index not in used]
    passages = {
        page.page_index: Passage("page", page.page_index + first_page, (page.text or "").strip())
        for page in read
    }
    passages |= {
        gist.page_index: Passage("gist", gist.page_index + first_page, gist.gist or "")
        for gist in left
    }
    return Context(
        passages=tuple(passages[index] for index in sorted(passages)),
        spans=tuple(Span(page.start_char, page.end_char) for page in read),
        page_indexes=tuple(page.page_index for page in read),
        num_words=sum(page.num_words for page in read) + sum(gist.num_words for gist in left),
    )


def memory_with_appended(
    rows: UnitRows, used: Sequence[int], first_page: int, heading: str | None
) -> Context:
    """The whole gist memory, then under the heading the raw pages `used`, in their order."""
    gists, raw = (
        gist_memory(rows[Page], rows[Gist], (), first_page),
        raw_pages(rows, used, first_page),
    )
    of_page = dict(zip(raw.page_indexes, raw.passages, strict=True))
    over = (Passage("text", None, heading),) if heading and used else ()
    return replace(
        raw,
        passages=(*gists.passages, *over, *(of_page[index] for index in used)),
        num_words=gists.num_words + raw.num_words,
        counted=(*gists.parts, *raw.parts),
    )


def raw_pages(rows: UnitRows, used: Collection[int], first_page: int) -> Context:
    """The raw pages `used` alone, in document order. Raises ValueError for one that is missing."""
    used = set(used)
    if missing := used - {page.page_index for page in rows[Page]}:
        raise ValueError(f"there is no page {min(missing)}; page indexes count from 0")
    read = [page for page in rows[Page] if page.page_index in used]
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
    rows: UnitRows,
    keep: Literal["first", "last"] | None,
    most_words: int | None,
    truncate_by: TruncateBy = "words",
) -> Context:
    """The document's text, or its first or last `most_words` words; `spaces` cuts by what stands
    between single spaces, and still counts words."""
    text = rows.document.text
    start, end = 0, len(text)
    if keep is not None and most_words is not None:
        if truncate_by == "spaces":
            start, end = _between_spaces(text, keep, most_words)
        elif rows.document.num_words > most_words:
            words = word_spans(text)
            start = words[-most_words][0] if keep == "last" else 0
            end = words[most_words - 1][1] if keep == "first" else end
    return text_span(text, start, end)


def text_span(text: str, start: int, end: int) -> Context:
    """A part of the document's text."""
    return Context(
        passages=(Passage("text", None, text[start:end].strip()),),
        spans=(Span(start, end),),
        num_words=num_words(text[start:end]),
    )


def _between_spaces(text: str, keep: Literal["first", "last"], most: int) -> tuple[int, int]:
    """The span of the first or last `most` of `text.split(" ")`: a line break separates nothing."""
    words = text.split(" ")
    if keep == "first":
        return 0, len(" ".join(words[:most]))
    return len(text) - len(" ".join(words[-most:])), len(text)


async def free_tokens(
    ask: Ask,
    pages: Sequence[Page],
    gists: Sequence[Gist],
    raw: Collection[int],
    question_tokens: int,
) -> int:
    """The tokens left beside the gist memory with the pages `raw` in it, a question of
    `question_tokens` and the replies of a look-up and an answer; below 0: so many are too much."""
    passages = gist_memory(pages, gists, raw, first_page=0).passages
    prompt = ParallelLookUp(passages=passages, question="", options=(), max_pages=1)
    replies = ask.max_reply_tokens(ParallelLookUp) + ask.max_reply_tokens(AnswerQuestion)
    return ask.context_tokens - await ask.num_tokens(prompt) - replies - question_tokens


async def longest_readable(ask: Ask, pages: Sequence[Page], question_tokens: int) -> list[int]:
    """The index of the longest page that fits the context by itself; empty where none does."""
    for page in sorted(pages, key=lambda page: -page.num_words):
        raw = [page.page_index]
        if await free_tokens(ask, [page], [], raw, question_tokens) >= 0:
            return raw
    return []


def cut_gist(gist: Gist, most_words: int, header: str | None = None) -> Gist:
    """The gist with its first `most_words` words, truncated; itself where it has no more. A
    session's header stays before it and does not count."""
    if gist.num_words <= most_words:
        return gist
    text = (gist.gist or "").removeprefix(header or "").strip()
    end = word_spans(text)[most_words - 1][1] if most_words else 0
    return replace(with_text(gist, text[:end], header), problem="truncated")


def with_copied(gists: Iterable[Gist], pages: Sequence[Page]) -> list[Gist]:
    """The gists, each with the share of its page's words that it has in the same order. Gists and
    pages are in the same order."""
    return [
        replace(gist, copied=None if gist.gist is None else _copied(page.text or "", gist.gist))
        for gist, page in zip(gists, pages, strict=True)
    ]


def _copied(page: str, gist: str) -> float:
    of_page, of_gist = _words(page), _words(gist)
    return words_in_common(of_page, of_gist) / max(1, len(of_page))


def _words(text: str) -> list[str]:
    folded = text.casefold()
    return [folded[start:end] for start, end in word_spans(folded)]


def with_text(gist: Gist, text: str, header: str | None) -> Gist:
    """The gist with another text after its session's header."""
    whole = f"{header} {text}" if header else text
    return replace(gist, gist=whole, num_words=num_words(text), problem=None)

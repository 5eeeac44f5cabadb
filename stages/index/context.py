"""The reader's final context: passages of gists, raw pages or raw text, with their spans; a check
that a document's gist memory fits it (ReadAgent appendix H); the most tokens that it may have, a
budget, so that methods are compared at the same number; and where raw pages stand in a gist memory,
in place of their gists, as ReadAgent has it, or appended, after the whole memory, which then begins
every prompt about the document alike."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.errors import UsageError
from pipeline.core.rows import Span, UnitRows
from pipeline.work.stage import CAME_LATER, Stage
from stages.index.paginate import Paginate
from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.choose_pages import ParallelLookUp
from stages.prompts.passages import Passage
from stages.tables.pages import Gist, Page
from stages.text.fit_to_limit import largest_number
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


def gist_memory(
    pages: Sequence[Page], gists: Sequence[Gist], used: Collection[int], first_page: int
) -> Context:
    """Gists in page order, the raw pages `used` in place of theirs (section 3.2)."""
    used = set(used)
    raw = _raw([page for page in pages if page.page_index in used], first_page)
    left = [gist for gist in gists if gist.page_index not in used]
    passages = dict(zip(raw.page_indexes, raw.passages, strict=True)) | {
        gist.page_index: Passage("gist", gist.page_index + first_page, gist.gist or "")
        for gist in left
    }
    return replace(
        raw,
        passages=tuple(passages[index] for index in sorted(passages)),
        num_words=raw.num_words + sum(gist.num_words for gist in left),
    )


def memory_with_appended(
    rows: UnitRows, used: Sequence[int], first_page: int, heading: str | None
) -> Context:
    """The whole gist memory, then under the heading the raw pages `used`, in their order."""
    gists = gist_memory(rows[Page], rows[Gist], (), first_page)
    raw = raw_pages(rows, used, first_page)
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
    return _raw([page for page in rows[Page] if page.page_index in used], first_page)


def _raw(pages: Sequence[Page], first_page: int) -> Context:
    return Context(
        passages=tuple(
            Passage("page", page.page_index + first_page, (page.text or "").strip())
            for page in pages
        ),
        spans=tuple(Span(page.start_char, page.end_char) for page in pages),
        page_indexes=tuple(page.page_index for page in pages),
        num_words=sum(page.num_words for page in pages),
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


class Budgeted(Stage):
    """Base class of stages that keep a budget; None: as much as fits the engine's context. Tokens
    are counted as `Answer.num_context_tokens` is."""

    budget: Annotated[PositiveInt | None, CAME_LATER] = None

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError, naming `place`, where the pages that the stages make are larger than
        the budget, as far as settings say so: a word has a token or more."""
        for stage in upstream if self.budget else ():
            size = stage.page_size() if isinstance(stage, Paginate) else None
            if self.budget and size and size[1] > self.budget:
                name, least = size
                raise UsageError(
                    f"{place}: budget={self.budget} is smaller than a page, as {name}={least}; "
                    f"raise the budget to {least} or more, or make shorter pages"
                )


async def pages_within(
    budget: int, num_pages: int, context: Callable[[int], Context], ask: Ask
) -> tuple[int, str | None]:
    """The number of pages that the budget has room for, up to the first that would pass it; and why
    nothing can be answered within it, None where something can. `context`: the one with the first
    so many of the `num_pages` pages."""

    async def size(number: int) -> int:
        return await ask.part_tokens(context(number).parts)

    fitting = await largest_number(budget, size, num_pages)
    tokens = await size(fitting)
    if tokens > budget:
        return 0, f"budget={budget}: the context has {tokens} tokens without any page; raise it"
    if num_pages and not fitting and not tokens:
        first = await size(1)
        advice = "raise it or make shorter pages"
        return 0, f"budget={budget}: the first page has {first} tokens; {advice}"
    return fitting, None


Layout = Literal["in_place", "appended"]
Pages = frozenset[int]


class ShowsGistMemory(Budgeted):
    """Base class of stages whose prompts show the gist memory with raw pages.

    `layout` None is in_place. Appended pages stand under `appended_heading`.
    """

    first_page: int = Field(ge=0, le=1)
    layout: Layout | None = None
    appended_heading: str | None = None

    def hashed(self) -> dict[str, Any]:
        """Its kind and settings; those of the layout only where it is another one: other steps keep
        their ids."""
        own = super().hashed()
        if self.layout == "appended":
            return own
        return {key: own[key] for key in own if key not in ("layout", "appended_heading")}

    def memory(self, rows: UnitRows, used: Sequence[int]) -> Context:
        """The gist memory with the raw pages `used`, which if appended stand in that order."""
        if self.layout == "appended":
            return memory_with_appended(rows, used, self.first_page, self.appended_heading)
        return gist_memory(rows[Page], rows[Gist], used, self.first_page)


def orders_alike(chosen: Collection[Pages], words: Mapping[int, int]) -> dict[Pages, list[int]]:
    """The order of each set of pages, such that orders begin alike and long: pages at equal places
    after equal pages are computed once by an engine with a prefix cache. `words`: of each page.

    Greedy: of all sets that begin with the same pages so far, next is the page that saves most
    words, which are its own times the sets that have it, but for the first; of pages that save as
    much the first.
    """
    found: dict[Pages, list[int]] = {}
    groups: list[tuple[list[int], list[Pages]]] = [([], list(chosen))]
    while groups:
        before, sets = groups.pop()
        found |= {pages: before for pages in sets if len(pages) == len(before)}
        sets = [pages for pages in sets if len(pages) > len(before)]
        number = Counter(page for pages in sets for page in pages if page not in before)
        if number:
            saved = {page: (times - 1) * words[page] for page, times in number.items()}
            best = min(saved, key=lambda page: (-saved[page], page))
            groups.append((before, [pages for pages in sets if best not in pages]))
            groups.append(([*before, best], [pages for pages in sets if best in pages]))
    return found

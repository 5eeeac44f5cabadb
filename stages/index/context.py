"""The reader's final context: passages of gists, raw pages or raw text, with their spans.

It may have at most a budget of tokens, so that methods can be compared at equal size. Raw pages
stand in place of their gists, as in ReadAgent, or are appended to the gist memory, with which every
prompt about the document then begins. Also checks that gist memories fit (ReadAgent appendix H).
"""

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
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.tables.pages import Gist, Page
from stages.text.fit_to_limit import largest_number
from stages.text.words import num_words, word_spans, words_in_common

TruncateBy = Literal["words", "spaces"]


@dataclass(frozen=True, slots=True)
class Context:
    passages: tuple[Passage, ...] = ()
    spans: tuple[Span, ...] = ()  # the raw text in it
    page_indexes: tuple[int, ...] = ()  # the raw pages in it
    num_words: int = 0  # of gists and raw text; tags and question are not counted
    counted: tuple[str, ...] | None = None  # gists and raw text, where passages show more

    @property
    def parts(self) -> tuple[str, ...]:
        """The gists and pieces of raw text whose words and tokens are counted."""
        return tuple(p.text for p in self.passages) if self.counted is None else self.counted


def gist_memory(
    pages: Sequence[Page], gists: Sequence[Gist], used: Collection[int], first_page: int
) -> Context:
    """Gists in page order, with the raw pages `used` in place of their gists (section 3.2)."""
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
    """The whole gist memory, then under the heading the raw pages `used`, in the order given."""
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
    """The raw pages `used` alone, in document order. Raises ValueError if one is missing."""
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
    """The document's text, or its first or last `most_words` words. With `truncate_by` spaces the
    limit counts pieces between single spaces; `num_words` still counts words."""
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
    return Context(
        passages=(Passage("text", None, text[start:end].strip()),),
        spans=(Span(start, end),),
        num_words=num_words(text[start:end]),
    )


def _between_spaces(text: str, keep: Literal["first", "last"], most: int) -> tuple[int, int]:
    """The span of the first or last `most` of `text.split(" ")`; line breaks do not separate."""
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
    `question_tokens`, and the replies of a look-up and an answer. Negative where they do not
    fit."""
    passages = gist_memory(pages, gists, raw, first_page=0).passages
    prompt = ParallelLookUp(passages=passages, question="", options=(), max_pages=1)
    replies = ask.max_reply_tokens(ParallelLookUp) + ask.max_reply_tokens(AnswerQuestion)
    return ask.context_tokens - await ask.num_tokens(prompt) - replies - question_tokens


async def longest_readable(ask: Ask, pages: Sequence[Page], question_tokens: int) -> list[int]:
    """The index of the longest page that fits the context by itself; empty if none does."""
    for page in sorted(pages, key=lambda page: -page.num_words):
        raw = [page.page_index]
        if await free_tokens(ask, [page], [], raw, question_tokens) >= 0:
            return raw
    return []


def cut_gist(gist: Gist, most_words: int, header: str | None = None) -> Gist:
    """The gist cut to its first `most_words` words, with problem truncated; unchanged if not
    longer. A session's header stays and is not counted."""
    if gist.num_words <= most_words:
        return gist
    text = (gist.gist or "").removeprefix(header or "").strip()
    end = word_spans(text)[most_words - 1][1] if most_words else 0
    return replace(with_text(gist, text[:end], header), problem="truncated")


def with_copied(gists: Iterable[Gist], pages: Sequence[Page]) -> list[Gist]:
    """The gists with the share of their pages' words that they repeat in order; pages in gist
    order."""
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
    """The gist with another text after the session's header."""
    whole = f"{header} {text}" if header else text
    return replace(gist, gist=whole, num_words=num_words(text), problem=None)


class Budgeted(Stage):
    """Base class of stages with a budget, in the tokens of `Answer.num_context_tokens`. None: as
    much as fits the engine's context."""

    budget: Annotated[PositiveInt | None, CAME_LATER] = None

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError, naming `place`, where the settings of `upstream` make pages larger than
        the budget, as a word has at least one token."""
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
    """The number of pages that fit the budget, and the reason why no answer is possible within it,
    or None.

    `context` returns the context with the first n pages. Pages after the first that does not fit
    are not tried.
    """

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

    `layout` None means in_place. Appended pages stand under `appended_heading`.
    """

    first_page: int = Field(ge=0, le=1)
    layout: Layout | None = None
    appended_heading: str | None = None

    def hashed(self) -> dict[str, Any]:
        """Leaves out the layout's settings unless it is appended, to keep other steps' ids."""
        own = super().hashed()
        if self.layout == "appended":
            return own
        return {key: own[key] for key in own if key not in ("layout", "appended_heading")}

    def memory(self, rows: UnitRows, used: Sequence[int]) -> Context:
        """The gist memory with the raw pages `used`; appended pages keep that order."""
        if self.layout == "appended":
            return memory_with_appended(rows, used, self.first_page, self.appended_heading)
        return gist_memory(rows[Page], rows[Gist], used, self.first_page)


def orders_alike(chosen: Collection[Pages], words: Mapping[int, int]) -> dict[Pages, list[int]]:
    """An order for each set of pages, chosen so that orders share long beginnings, which an engine
    with a prefix cache computes once. `words` has the number of words of each page.

    Greedy: among all sets with the same beginning, the next page is the one that saves most words,
    its own times the number of further sets that have it; ties go to the lower page.
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

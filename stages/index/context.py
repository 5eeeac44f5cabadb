"""The reader's final context: passages of gists, raw pages or raw text, with their spans, within a
budget of tokens, so that methods can be compared at equal size. Raw pages stand in place of their
gists, as in ReadAgent, or are appended to the gist memory, with which every prompt about the
document then begins.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from pipeline.core.errors import UsageError
from pipeline.core.rows import Question, Span, UnitRows
from pipeline.work.stage import CAME_LATER, Stage
from stages.index.paginate import Paginate
from stages.prompts.answer import Passage
from stages.tables.pages import Gist, Page


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


def fields_of(question: Question) -> dict[str, Any]:
    """The question as prompts have it."""
    asked_at = question.asked_at or ""
    return {"question": question.question, "options": question.options, "asked_at": asked_at}


def gist_memory(
    pages: Sequence[Page], gists: Sequence[Gist], used: Collection[int], first_page: int
) -> Context:
    """Gists in page order, with the raw pages `used` in place of their gists (section 3.2)."""
    used = set(used)
    raw = _raw([page for page in pages if page.page_index in used], first_page)
    passages = dict(zip(raw.page_indexes, raw.passages, strict=True))
    words = raw.num_words
    for gist in gists:
        if gist.page_index not in used:
            number = gist.page_index + first_page
            passages[gist.page_index] = Passage("gist", number, gist.gist or "")
            words += gist.num_words
    in_order = tuple(passages[index] for index in sorted(passages))
    return replace(raw, passages=in_order, num_words=words)


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


class Budgeted(Stage):
    """Base class of stages with a budget, in the tokens of `Answer.num_context_tokens`. None: as
    much as fits the engine's context."""

    budget: Annotated[PositiveInt | None, CAME_LATER] = None

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError, naming `place`, where the settings of `upstream` make pages larger than
        the budget, as a word has at least one token."""
        for stage in upstream:
            name = stage.size_setting if isinstance(stage, Paginate) else None
            if self.budget and name and (least := getattr(stage, name)) > self.budget:
                raise UsageError(
                    f"{place}: budget={self.budget} is smaller than a page, as {name}={least}; "
                    f"raise the budget to {least} or more, or make shorter pages"
                )


class ShowsGistMemory(Budgeted):
    """Base class of stages whose prompts show the gist memory with raw pages.

    `layout` None means in_place. Appended pages stand under `appended_heading`.
    """

    first_page: int = Field(ge=0, le=1)
    layout: Literal["in_place", "appended"] | None = None
    appended_heading: str | None = None

    def hashed(self) -> dict[str, Any]:
        """Leaves out the layout's settings unless it is appended, to keep other steps' ids."""
        settings = super().hashed()
        if self.layout != "appended":
            del settings["layout"], settings["appended_heading"]
        return settings

    def memory(self, rows: UnitRows, used: Sequence[int]) -> Context:
        """The gist memory with the raw pages `used`; appended pages keep that order."""
        if self.layout != "appended":
            return gist_memory(rows[Page], rows[Gist], used, self.first_page)
        gists = gist_memory(rows[Page], rows[Gist], (), self.first_page)
        raw = raw_pages(rows, used, self.first_page)
        of_page = dict(zip(raw.page_indexes, raw.passages, strict=True))
        heading = self.appended_heading if used else None
        return replace(
            raw,
            passages=(
                *gists.passages,
                *((Passage("text", None, heading),) if heading else ()),
                *(of_page[index] for index in used),
            ),
            num_words=gists.num_words + raw.num_words,
            counted=(*gists.parts, *raw.parts),
        )


def orders_alike(
    chosen: Collection[frozenset[int]], words: Mapping[int, int]
) -> dict[frozenset[int], list[int]]:
    """An order for each set of pages, chosen so that orders share long beginnings, which an engine
    with a prefix cache computes once. `words` has the number of words of each page.

    Greedy: among all sets with the same beginning, the next page is the one that saves most words,
    its own times the number of further sets that have it; ties go to the lower page.
    """
    orders: dict[frozenset[int], list[int]] = {}
    groups: list[tuple[list[int], list[frozenset[int]]]] = [([], list(chosen))]
    while groups:
        before, sets = groups.pop()
        orders |= {pages: before for pages in sets if len(pages) == len(before)}
        sets = [pages for pages in sets if len(pages) > len(before)]
        number = Counter(page for pages in sets for page in pages if page not in before)
        if number:
            saved = {page: (times - 1) * words[page] for page, times in number.items()}
            best = min(saved, key=lambda page: (-saved[page], page))
            groups.append((before, [pages for pages in sets if best not in pages]))
            groups.append(([*before, best], [pages for pages in sets if best in pages]))
    return orders

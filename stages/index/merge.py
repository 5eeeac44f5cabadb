"""Merge pages of documents whose gists do not fit the context (ReadAgent appendix H)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field, NonNegativeInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.rows import UnitRows
from stages.index.context import cut_gist, free_tokens, longest_readable
from stages.index.paginate import Paginate
from stages.prompts.answer import AnswerQuestion
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import PageGist, StartsChapter
from stages.tables.pages import Gist, Page
from stages.text.words import PAGE_BREAK

Merged = tuple[Page, Gist]
"""A page, and in place of its gist the longest of those of the pages it was merged from."""


class CopiedPages(Paginate):
    """The pages of an earlier memory as a memory of their own, so that other gists can be made of
    them; `purpose` is part of its name. No calls."""

    kind = "copied"
    version = 1
    reads = (Page,)
    purpose: str

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Pages -> the same Pages."""
        return [replace(page, merged_from=(page.page_index,)) for page in rows[Page]]


class MergedPages(Paginate):
    """Pages merged with those that follow, as long as the gist memory with its longest page raw
    does not fit the context; a document that fits keeps its pages without a call.

    The model is asked page by page whether the next one starts a new chapter: at "no" they are
    merged, at "not sure" as `not_sure` says (the paper leaves that open; by default they are, since
    only documents that are too long come here). A merged page never takes more than `page_share` of
    the context, so that it can be looked up. It stops as soon as the memory would fit if a merged
    page's gist were as long as the longest of its parts' gists, or at the last page with
    `merge_until` end. Where the pages are still so many that even gists of `least_words` would not
    fit, neighbours are merged without asking. No page goes past a form feed.
    """

    kind = "merged"
    version = 1
    reads = (Page, Gist)
    prompts = (StartsChapter,)
    leaves_room_for = (AnswerQuestion, ParallelLookUp)
    asks_in_turn = True
    not_sure: Literal["merge", "keep"]
    merge_until: Literal["fits", "end"]
    page_share: float = Field(gt=0, le=1)
    question_tokens: NonNegativeInt
    least_words: NonNegativeInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Pages and their Gists -> Pages, in order, one call after another.

        chosen_by gives the reason for a page's end: model (the next one starts a new chapter),
        fallback (no readable reply: not merged), rule (the memory fits, or the two pages together
        would not), end (the last page). Problems: none, as a page always has its text.
        """
        made = [
            (replace(page, merged_from=(page.page_index,)), gist)
            for page, gist in zip(rows[Page], rows[Gist], strict=True)
        ]
        if not await self._fits(ask, made):
            made = await self._merged(made, ask, is_asked=True)
            if not await self._fits(ask, self._shortest(made)):
                made = await self._merged(made, ask, is_asked=False)
        return _numbered(made)[0]

    async def _merged(self, made: Sequence[Merged], ask: Ask, is_asked: bool) -> list[Merged]:
        """One pass: each page takes in the pages after it while it may."""
        done: list[Merged] = []
        left = deque(made)
        fits = False
        while len(left) > 1 and not fits:
            current, following = left.popleft(), left.popleft()
            both = _together(current, following)
            reason = "rule"
            if await self._may_merge(both, following[0], ask):
                reason = await self._verdict(current[0], following[0], ask) if is_asked else ""
            if reason:
                done.append(_ended(current, reason))
                left.appendleft(following)
            else:
                left.appendleft(both)
                fits = await self._is_enough([*done, *left], ask, is_asked)
            ask.progress.tell(len(made), len(made) - len(left))
        return [*done, *(_ended(one, "rule") for one in list(left)[:-1]), _ended(left[-1], "end")]

    async def _is_enough(self, made: Sequence[Merged], ask: Ask, is_asked: bool) -> bool:
        if not is_asked:
            return await self._fits(ask, self._shortest(made))
        return self.merge_until == "fits" and await self._fits(ask, made)

    async def _may_merge(self, both: Merged, following: Page, ask: Ask) -> bool:
        """True if `both`, the page with `following`, could still be shortened and looked up."""
        if (following.text or "").startswith(PAGE_BREAK):
            return False
        tokens = await ask.num_tokens(PageGist(page=_text(both[0])))
        if tokens > self.page_share * ask.context_tokens:
            return False
        return bool(await longest_readable(ask, [both[0]], self.question_tokens))

    async def _verdict(self, page: Page, following: Page, ask: Ask) -> str:
        """The reason why a page ends before the following one; "" where the two are merged."""
        prompt = StartsChapter(page=_text(page), next_page=_text(following))
        asked = await ask(prompt, Subject(page_index=following.merged_from[0]))
        if asked.value is None:
            return "fallback"
        merges = asked.value == "no" or (asked.value == "not sure" and self.not_sure == "merge")
        return "" if merges else "model"

    def _shortest(self, made: Sequence[Merged]) -> list[Merged]:
        """Every gist at its minimum length."""
        return [(page, cut_gist(gist, self.least_words)) for page, gist in made]

    async def _fits(self, ask: Ask, made: Sequence[Merged]) -> bool:
        pages, gists = _numbered(made)
        raw = await longest_readable(ask, pages, self.question_tokens)
        return await free_tokens(ask, pages, gists, raw, self.question_tokens) >= 0


def _together(one: Merged, following: Merged) -> Merged:
    (first, a), (second, b) = one, following
    page = replace(
        first,
        end_char=second.end_char,
        text=(first.text or "") + (second.text or ""),
        num_words=first.num_words + second.num_words,
        merged_from=first.merged_from + second.merged_from,
    )
    return page, a if a.num_words >= b.num_words else b


def _ended(one: Merged, chosen_by: str) -> Merged:
    return replace(one[0], chosen_by=chosen_by), one[1]


def _numbered(made: Sequence[Merged]) -> tuple[list[Page], list[Gist]]:
    pages = [replace(page, page_index=place) for place, (page, _) in enumerate(made)]
    gists = [replace(gist, page_index=place) for place, (_, gist) in enumerate(made)]
    return pages, gists


def _text(page: Page) -> str:
    return (page.text or "").strip()

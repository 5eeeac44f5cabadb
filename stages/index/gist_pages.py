"""Shorten each page of a document to its gist; where the gists do not fit the context, merge pages,
and shorten gists again (ReadAgent section 3.1, appendices H and E.2).
"""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import gist_memory
from stages.index.paginate import (
    Conversation,
    InConversations,
    Paginate,
    PaginateInConversations,
    is_asked,
)
from stages.prompts.answer import AnswerQuestion
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import (
    PageGist,
    PageGistForTask,
    ShorterGist,
    ShownPageGist,
    StartsChapter,
)
from stages.tables.pages import Gist, Page
from stages.text.words import (
    PAGE_BREAK,
    header_of,
    num_words,
    without_header,
    word_spans,
    words_in_common,
)


class GistPages(Stage):
    """ReadAgent section 3.1: shorten each page by itself ("shorten", never "summarize")."""

    name = "gist"
    version = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes = Gist
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (PageGist,)
    page_breaks: bool  # the document is sessions, each with a header on its first page

    async def run(self, rows: UnitRows, ask: Ask) -> list[Gist]:
        """Pages -> one Gist each, in order.

        Problems: truncated (the text is kept), unparseable (a complete reply without a word);
        without a gist: context_overflow, empty_input, timeout, refused, engine_failed.
        """
        pages = rows[Page]
        work = zip(pages, self._headers(pages), await self.follow_ups(rows, ask), strict=True)
        gists = await asyncio.gather(*(self._gist(*each, ask) for each in work))
        return with_copied(gists, pages)

    def prompt(self, text: str) -> PageGist:
        return PageGist(page=text)

    async def follow_ups(self, rows: UnitRows, ask: Ask) -> Sequence[Prompt[str] | None]:
        """For each page the prompt in a conversation that has shown it; None without one."""
        return [None] * len(rows[Page])

    def _headers(self, pages: Sequence[Page]) -> list[str | None]:
        """For each page the header of its session, which only the session's first page shows."""
        headers: list[str | None] = []
        for page in pages:
            header = header_of(page.text or "") if self.page_breaks else None
            headers.append(header or (headers[-1] if headers else None))
        return headers

    async def _gist(
        self, page: Page, header: str | None, follow_up: Prompt[str] | None, ask: Ask
    ) -> Gist:
        """The header is put before the gist and not into the prompt, so that equal sessions of
        different dates and documents send the same request, which is asked once."""
        text = page.text or ""
        text = (without_header(text) if header else text).strip()
        if not text:
            return Gist.about(page, problem="empty_input")
        subject = Subject(page_index=page.page_index)
        reply = await ask(follow_up or self.prompt(text), subject, is_shared=header is not None)
        gist = (reply.value or "") if reply.has_reply else None
        return Gist.about(
            page,
            gist=f"{header} {gist}" if header and gist else gist,
            num_words=num_words(gist or ""),
            problem=reply.problem,
        )


def with_copied(gists: Iterable[Gist], pages: Sequence[Page]) -> list[Gist]:
    """The gists with the share of their page's words that they repeat in order."""

    def words(text: str | None) -> list[str]:
        folded = (text or "").casefold()
        return [folded[start:end] for start, end in word_spans(folded)]

    copied: list[Gist] = []
    for gist, page in zip(gists, pages, strict=True):
        of_page = words(page.text)
        share = words_in_common(of_page, words(gist.gist)) / max(1, len(of_page))
        copied.append(replace(gist, copied=None if gist.gist is None else share))
    return copied


class ConditionalGists(GistPages):
    """Gists for a `task` that is known before reading (appendix E.1)."""

    kind = "conditional"
    version = 1
    prompts = (PageGistForTask,)
    task: str = Field(min_length=1)

    def prompt(self, text: str) -> PageGist:
        return PageGistForTask(page=text, task=self.task)


class FollowUpGists(InConversations, GistPages):
    """Needs pages of the stage `paginate` (kind conversation) with the same settings. A page whose
    end nobody was asked for, and one whose conversation has no room for another reply, is shortened
    by itself."""

    kind = "follow_up"
    version = 1
    prompts = (ShownPageGist, PageGist)

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError where the pages come from other conversations."""
        shared = {*InConversations.model_fields}
        for stage in upstream:
            if not isinstance(stage, PaginateInConversations) or (
                self.model_dump(include=shared) != stage.model_dump(include=shared)
            ):
                needed = PaginateInConversations.label()
                raise UsageError(f"{place}: needs pages of {needed} with the same settings")

    async def follow_ups(self, rows: UnitRows, ask: Ask) -> list[Prompt[str] | None]:
        text = rows.document.text
        prompts: list[Prompt[str] | None] = []
        for parts in self.parts(text, self.max_words):
            ends = [part.end_char for part in parts]
            conversation = Conversation(self, text, parts)
            while conversation.first < len(parts):
                page, labels = rows[Page][len(prompts)], conversation.labels()
                end = bisect_left(ends, page.end_char) + 1
                prompt = None
                if is_asked(page):
                    shown = without_header(page.text or "").strip()
                    prompt = ShownPageGist(shown, await conversation.prompt(labels, ask), end)
                conversation.ended(labels, end, is_asked(page))
                fits = prompt and await ask.fits(prompt, ask.max_reply_tokens(ShownPageGist))
                prompts.append(prompt if fits else None)
        return prompts


class _FitsContext(Stage):
    """Base class of stages that make the gist memory fit the context, together with a question of
    `question_tokens` and the replies of a look-up and an answer. No gist is shortened to fewer than
    `least_words`."""

    leaves_room_for = (AnswerQuestion, ParallelLookUp)
    question_tokens: NonNegativeInt
    least_words: NonNegativeInt

    async def free_tokens(
        self, ask: Ask, pages: Sequence[Page], gists: Sequence[Gist], raw: Collection[int]
    ) -> int:
        """The tokens left beside the gist memory with the pages `raw` in it, perhaps below 0."""
        passages = gist_memory(pages, gists, raw, first_page=0).passages
        look_up = ParallelLookUp(passages=passages, question="", options=(), max_pages=1)
        replies = sum(ask.max_reply_tokens(prompt) for prompt in self.leaves_room_for)
        tokens = await ask.num_tokens(look_up) + replies + self.question_tokens
        return ask.context_tokens - tokens

    async def longest_readable(self, ask: Ask, pages: Sequence[Page]) -> list[int]:
        """The index of the longest page that fits the context by itself; empty if none does."""
        for page in sorted(pages, key=lambda page: -page.num_words):
            if await self.free_tokens(ask, [page], [], [page.page_index]) >= 0:
                return [page.page_index]
        return []


def _cut_gist(gist: Gist, most_words: int, header: str | None = None) -> Gist:
    """The gist cut to `most_words` words beside its header, and so truncated, if it is longer."""
    if gist.num_words <= most_words:
        return gist
    text = (gist.gist or "").removeprefix(header or "").strip()
    end = word_spans(text)[most_words - 1][1] if most_words else 0
    return replace(_with_text(gist, text[:end], header), problem="truncated")


def _with_text(gist: Gist, text: str, header: str | None) -> Gist:
    whole = f"{header} {text}" if header else text
    return replace(gist, gist=whole, num_words=num_words(text), problem=None)


class CopiedPages(Paginate):
    """The pages of an earlier memory as a memory of their own, so that other gists can be made of
    them; `purpose` is part of its name. No calls."""

    kind = "copied"
    version = 1
    reads = (Page,)
    purpose: str

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        return [replace(page, merged_from=(page.page_index,)) for page in rows[Page]]


PageAndGist = tuple[Page, Gist]  # of a merged page the longest of its parts' gists
_SAFETY = 0.95  # of the words expected to fit, as tokens per word differ between gists


class MergedPages(_FitsContext, Paginate):
    """Pages merged with those that follow, as long as the gist memory with its longest page raw
    does not fit the context; a document that fits keeps its pages without a call.

    The model is asked page by page whether the next one starts a new chapter. After "no" the two
    are merged; after "not sure" `not_sure` decides (the paper leaves that open; by default they are
    merged, since only documents that are too long come here). A merged page never takes more than
    `page_share` of the context, so that it can be looked up. Merging ends as soon as the memory
    would fit if a merged page's gist were as long as the longest of its parts' gists; with
    `merge_until` end it goes on to the last page. If there are still so many pages that even gists
    of `least_words` would not fit, neighbors are merged without asking. No page goes past a form
    feed.
    """

    kind = "merged"
    version = 1
    reads = (Page, Gist)
    prompts = (StartsChapter,)
    asks_in_turn = True
    not_sure: Literal["merge", "keep"]
    merge_until: Literal["fits", "end"]
    page_share: float = Field(gt=0, le=1)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Pages and their Gists -> Pages, in order, one call after another.

        chosen_by gives the reason for a page's end: model (the next one starts a new chapter),
        fallback (no readable reply: not merged), rule (the memory fits, or the two pages together
        would not), end (the last page). Problems: none, as a page always has its text.
        """
        pages = [
            (replace(page, merged_from=(page.page_index,)), gist)
            for page, gist in zip(rows[Page], rows[Gist], strict=True)
        ]
        if not await self._fits(pages, ask):
            pages = await self._merged(pages, ask, is_asked=True)
            if not await self._fits(pages, ask, self.least_words):
                pages = await self._merged(pages, ask, is_asked=False)
        return [replace(page, page_index=index) for index, (page, _) in enumerate(pages)]

    async def _merged(
        self, pages: Sequence[PageAndGist], ask: Ask, is_asked: bool
    ) -> list[PageAndGist]:
        """One pass: each page takes in the pages after it while it may."""
        done: list[PageAndGist] = []
        left = deque(pages)
        fits = False
        while len(left) > 1 and not fits:
            (page, gist), (following, its_gist) = left.popleft(), left.popleft()
            both = replace(
                page,
                end_char=following.end_char,
                text=(page.text or "") + (following.text or ""),
                num_words=page.num_words + following.num_words,
                merged_from=page.merged_from + following.merged_from,
            )
            if reason := await self._reason(page, following, both, ask, is_asked):
                done.append((replace(page, chosen_by=reason), gist))
                left.appendleft((following, its_gist))
            else:
                left.appendleft((both, max(gist, its_gist, key=lambda gist: gist.num_words)))
                if not is_asked or self.merge_until == "fits":
                    most_words = None if is_asked else self.least_words
                    fits = await self._fits([*done, *left], ask, most_words)
            ask.progress.tell(len(pages), len(pages) - len(left))
        reasons = [*["rule"] * (len(left) - 1), "end"]
        return done + [
            (replace(page, chosen_by=reason), gist)
            for (page, gist), reason in zip(left, reasons, strict=True)
        ]

    async def _reason(
        self, page: Page, following: Page, both: Page, ask: Ask, is_asked: bool
    ) -> str:
        """Why a page ends before the following one; "" where they are merged into `both`."""
        if (following.text or "").startswith(PAGE_BREAK):
            return "rule"
        tokens = await ask.num_tokens(PageGist(page=(both.text or "").strip()))
        is_long = tokens > self.page_share * ask.context_tokens
        if is_long or not await self.longest_readable(ask, [both]):
            return "rule"  # it could not be shortened, or looked up
        if not is_asked:
            return ""
        shown = [(each.text or "").strip() for each in (page, following)]
        prompt = StartsChapter(page=shown[0], next_page=shown[1])
        reply = await ask(prompt, Subject(page_index=following.merged_from[0]))
        if reply.value is None:
            return "fallback"
        merges = reply.value == "no" or (reply.value == "not sure" and self.not_sure == "merge")
        return "" if merges else "model"

    async def _fits(
        self, memory: Sequence[PageAndGist], ask: Ask, most_words: int | None = None
    ) -> bool:
        """True if the gist memory fits with its longest page raw, and gists cut to `most_words`."""
        pages = [replace(page, page_index=index) for index, (page, _) in enumerate(memory)]
        gists = [gist if most_words is None else _cut_gist(gist, most_words) for _, gist in memory]
        gists = [replace(gist, page_index=index) for index, gist in enumerate(gists)]
        raw = await self.longest_readable(ask, pages)
        return await self.free_tokens(ask, pages, gists, raw) >= 0


class FittedGists(_FitsContext, GistPages):
    """A page that was not merged keeps its gist without a call, a merged one is shortened to one.

    Where the gist memory with its longest page raw does not fit, gists are shortened again, older
    ones first, as older memories are fuzzier: the allowance of each is halved, from the first page
    on and round after round, until all together fit, and never below `least_words`. Only then is
    the model asked, once a gist, and a second time where its reply is too long. What is too long
    even then is cut, and so truncated.
    """

    kind = "fitted"
    version = 1
    reads = (Page, Gist)
    reads_other_memory = (Gist,)
    prompts = (PageGist, ShorterGist)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Gist]:
        """Pages, and the Gists of the pages they were made from -> one Gist each, in order.

        Problems: those of gists; truncated also where a gist was cut to fit.
        """
        pages, headers = rows[Page], self._headers(rows[Page])
        before = {gist.page_index: gist for gist in rows[Gist]}

        async def gist_of(page: Page, header: str | None) -> Gist:
            if len(page.merged_from) == 1:
                return replace(before[page.merged_from[0]], page_index=page.page_index)
            return await self._gist(page, header, None, ask)

        gists = await asyncio.gather(*map(gist_of, pages, headers))
        return with_copied(await self._fitted(pages, headers, gists, ask), pages)

    async def _fitted(
        self, pages: Sequence[Page], headers: Sequence[str | None], gists: Sequence[Gist], ask: Ask
    ) -> Sequence[Gist]:
        raw = await self.longest_readable(ask, pages)
        free = partial(self.free_tokens, ask, pages, raw=raw)
        empty = [replace(gist, gist="") for gist in gists]
        if (room := await free(empty)) < 0:  # even the tags are too much: none can be looked up
            free = partial(self.free_tokens, ask, pages, raw=[])
            room = await free(empty)
        left = await free(gists)
        if left >= 0:
            return gists
        words = [gist.num_words for gist in gists]
        most = _SAFETY * sum(words) * max(0, room) / (room - left)
        targets = _halved(words, most, self.least_words)
        work = zip(gists, headers, targets, strict=True)
        gists = await asyncio.gather(*(self._shorter(*each, ask) for each in work))
        while await free(gists) < 0 and any(targets):
            targets = [int(_SAFETY * target) for target in targets]
            work = zip(gists, headers, targets, strict=True)
            gists = [_cut_gist(gist, target, header) for gist, header, target in work]
        return gists

    async def _shorter(self, gist: Gist, header: str | None, most_words: int, ask: Ask) -> Gist:
        """The gist in at most `most_words` words beside its header; unchanged if not longer."""
        for turn in (0, 1):
            if gist.gist is None or gist.num_words <= most_words:
                return gist
            text = gist.gist.removeprefix(header or "").strip()
            subject = Subject(page_index=gist.page_index, turn=turn)
            reply = await ask(ShorterGist(gist=text, max_words=most_words), subject)
            if reply.value is None:
                break
            gist = _with_text(gist, reply.value, header)
        return _cut_gist(gist, most_words, header)


def _halved(words: Sequence[int], most: float, least: int) -> list[int]:
    """The words that each text may keep so that their sum is at most `most`: allowances are halved
    from the first text on, round after round, none to fewer than `least`."""
    allowed, total = list(words), sum(words)
    while total > most and any(number > least for number in allowed):
        for index, number in enumerate(allowed):
            if total <= most:
                break
            allowed[index] = min(number, max(least, number // 2))
            total -= number - allowed[index]
    return allowed

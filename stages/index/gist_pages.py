"""Shorten each page of a document to its gist; no questions.

A page is shown by itself, or in the conversation that found its end, which an engine with a prefix
cache still holds. Gists that must fit the context are shortened again where merging pages is not
enough (ReadAgent appendices H and E.2).
"""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field, NonNegativeInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import cut_gist, free_tokens, longest_readable, with_copied, with_text
from stages.index.paginate import PaginateInConversations, is_asked
from stages.index.windows import InConversations, Piece, shown_text, word_totals
from stages.prompts.answer import AnswerQuestion
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import PageGist, PageGistForTask, ShorterGist, ShownPageGist
from stages.tables.pages import Gist, Page
from stages.text.words import header_of, num_words, without_header


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
        gists = (self._gist(page, header, ask, prompt) for page, header, prompt in work)
        return with_copied(await asyncio.gather(*gists), pages)

    def prompt(self, text: str) -> PageGist:
        return PageGist(page=text)

    async def follow_ups(self, rows: UnitRows, ask: Ask) -> Sequence[Prompt[str] | None]:
        """For each page the prompt in a conversation that has shown it; None without one."""
        return [None] * len(rows[Page])

    def _headers(self, pages: Sequence[Page]) -> list[str | None]:
        """For each page the header of its session, which only the session's first page shows."""
        found: list[str | None] = []
        for page in pages:
            own = header_of(page.text or "") if self.page_breaks else None
            found.append(own or (found[-1] if found else None))
        return found

    async def _gist(
        self, page: Page, header: str | None, ask: Ask, follow_up: Prompt[str] | None = None
    ) -> Gist:
        """The header is put before the gist and not into the prompt, so that equal sessions of
        different dates and documents send the same request, which is asked once."""
        text = page.text or ""
        text = (without_header(text) if header else text).strip()
        if not text:
            return Gist.about(page, problem="empty_input")
        subject = Subject(page_index=page.page_index)
        asked = await ask(follow_up or self.prompt(text), subject, is_shared=header is not None)
        gist = (asked.value or "") if asked.has_reply else None
        return Gist.about(
            page,
            gist=f"{header} {gist}" if header and gist else gist,
            num_words=num_words(gist or ""),
            problem=asked.problem,
        )


class ConditionalGists(GistPages):
    """Gists for a `task` that is known before reading (appendix E.1)."""

    kind = "conditional"
    version = 1
    prompts = (PageGistForTask,)
    task: str = Field(min_length=1)

    def prompt(self, text: str) -> PageGist:
        return PageGistForTask(page=text, task=self.task)


_SAFETY = 0.95  # of the words expected to fit, as tokens per word differ between gists


class FittedGists(GistPages):
    """A page that was not merged keeps its gist without a call, a merged one is shortened to one.

    Where the gist memory with its longest page raw does not fit, gists are shortened again, older
    ones first, as older memories are fuzzier: each is given half of its words, from the first page
    on and round after round, until all together fit. Each is asked for once with the words it ends
    with, and once more from that reply where it was longer; what is too long even then is cut, and
    so truncated. None is asked for fewer than `least_words`.
    """

    kind = "fitted"
    version = 1
    reads = (Page, Gist)
    reads_other_memory = (Gist,)
    prompts = (PageGist, ShorterGist)
    leaves_room_for = (AnswerQuestion, ParallelLookUp)
    question_tokens: NonNegativeInt
    least_words: NonNegativeInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Gist]:
        """Pages, and the Gists of the pages they were made from -> one Gist each, in order.

        Problems: those of gists; truncated also where a gist was cut to fit.
        """
        before = {gist.page_index: gist for gist in rows[Gist]}
        headers = self._headers(rows[Page])
        pages = zip(rows[Page], headers, strict=True)
        made = (self._kept_or_made(page, header, before, ask) for page, header in pages)
        gists = list(await asyncio.gather(*made))
        shortened = await self._shortened(rows[Page], headers, gists, ask)
        return with_copied(shortened, rows[Page])

    async def _kept_or_made(
        self, page: Page, header: str | None, before: dict[int, Gist], ask: Ask
    ) -> Gist:
        if len(page.merged_from) == 1:
            return replace(before[page.merged_from[0]], page_index=page.page_index)
        return await self._gist(page, header, ask)

    async def _shortened(
        self, pages: Sequence[Page], headers: Sequence[str | None], gists: Sequence[Gist], ask: Ask
    ) -> list[Gist]:
        raw = await longest_readable(ask, pages, self.question_tokens)
        room = await self._free(pages, _empty(gists), raw, ask)
        if room < 0:  # even the tags are too much beside a page: none can be looked up
            raw, room = [], await self._free(pages, _empty(gists), [], ask)
        free = await self._free(pages, gists, raw, ask)
        if free >= 0:
            return list(gists)
        words = [gist.num_words for gist in gists]
        targets = halved(
            words, _SAFETY * sum(words) * max(0, room) / (room - free), self.least_words
        )
        work = zip(gists, headers, targets, strict=True)
        made = await asyncio.gather(*(self._regist(*one, ask) for one in work))
        while await self._free(pages, made, raw, ask) < 0 and any(targets):
            targets = [int(_SAFETY * target) for target in targets]
            work = zip(made, headers, targets, strict=True)
            made = [cut_gist(gist, target, header) for gist, header, target in work]
        return list(made)

    async def _free(
        self, pages: Sequence[Page], gists: Sequence[Gist], raw: Sequence[int], ask: Ask
    ) -> int:
        return await free_tokens(ask, pages, gists, raw, self.question_tokens)

    async def _regist(self, gist: Gist, header: str | None, most_words: int, ask: Ask) -> Gist:
        """The gist in at most `most_words` words beside its header; unchanged if not longer."""
        for turn in (0, 1):
            if gist.gist is None or gist.num_words <= most_words:
                return gist
            text = gist.gist.removeprefix(header or "").strip()
            subject = Subject(page_index=gist.page_index, turn=turn)
            asked = await ask(ShorterGist(gist=text, max_words=most_words), subject)
            if asked.value is None:
                break
            gist = with_text(gist, asked.value, header)
        return cut_gist(gist, most_words, header)


def _empty(gists: Sequence[Gist]) -> list[Gist]:
    return [replace(gist, gist="") for gist in gists]


def halved(words: Sequence[int], most: float, least: int) -> list[int]:
    """The words that each text may keep so that their sum is at most `most`: allowances are halved
    from the first text on, round after round, none to fewer than `least`."""
    found, total = list(words), sum(words)
    while total > most and any(kept > least for kept in found):
        for place, kept in enumerate(found):
            if total <= most:
                break
            found[place] = min(kept, max(least, kept // 2))
            total -= kept - found[place]
    return found


class FollowUpGists(InConversations, GistPages):
    """Needs pages of the stage `paginate` (kind conversation) with the same settings. A page whose
    end nobody was asked for, and one whose conversation has no room for another reply, is shortened
    by itself."""

    kind = "follow_up"
    version = 1
    prompts = (ShownPageGist, PageGist)

    def refuse_upstream(self, place: str, upstream: Sequence[Stage]) -> None:
        """Raise UsageError where the pages come from other conversations."""
        settings = sorted(InConversations.model_fields)
        for stage in upstream:
            if not isinstance(stage, PaginateInConversations):
                raise UsageError(
                    f"{place}: follows conversations, which {stage.label()} has none of; use "
                    f"{PaginateInConversations.label()} before it"
                )
            for name in settings:
                if (own := getattr(self, name)) != (other := getattr(stage, name)):
                    raise UsageError(
                        f"{place}: {name} is {own}, and {other} of {stage.label()}; give both one"
                    )

    async def follow_ups(self, rows: UnitRows, ask: Ask) -> list[Prompt[str] | None]:
        text = rows.document.text
        sections = (_Section(self, text, parts) for parts in self.parts(text, self.max_words))
        section: _Section | None = None
        found: list[Prompt[str] | None] = []
        for page in rows[Page]:
            if section is None or section.first >= len(section.parts):
                section = next(sections)
            found.append(await section.follow_up(page, ask))
        return found


class _Section:
    def __init__(self, by: InConversations, text: str, parts: Sequence[Piece]) -> None:
        self.by, self.text, self.parts = by, text, parts
        self.totals, self.ends = word_totals(parts), [part.end_char for part in parts]
        self.conversation = by.conversation(text)
        self.previous = self.first = 0

    async def follow_up(self, page: Page, ask: Ask) -> Prompt[str] | None:
        """The prompt about the next page; None if it is shortened by itself."""
        window = self.by.window(self.parts, self.totals, self.first, self.previous)
        after = await self.conversation.prompt(window, ask) if is_asked(page) else None
        end = bisect_left(self.ends, page.end_char) + 1
        self.conversation.ended(window, end, is_asked(page))
        self.previous, self.first = self.first, end
        if after is None:
            return None
        shown = shown_text(self.text, page.start_char, page.end_char)
        prompt = ShownPageGist(shown, after, end)
        has_room = await ask.fits(prompt, ask.max_reply_tokens(ShownPageGist))
        return prompt if has_room else None

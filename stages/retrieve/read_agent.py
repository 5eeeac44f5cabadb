"""Look-ups by a model that reads the gist memory and chooses pages: ReadAgent-P and -S (section
3.2).

Pages that would overflow the context (appendix H) or pass the budget are not read. If the gists
alone pass the budget, no page is requested, and the answer has the problem. Page numbers in prompts
and replies start at the family's `first_page`; rows hold page indexes, from 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, UnitRows
from stages.index.context import ShowsGistMemory, fields_of
from stages.prompts.answer import AnswerQuestion, shown
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.retrieve.look_up import LookUp
from stages.tables.lookups import Dropped, Lookup
from stages.tables.pages import Gist, Page


class _FromGists(ShowsGistMemory, LookUp, ABC):
    reads = (Page, Gist)
    leaves_room_for = (AnswerQuestion,)
    max_pages: PositiveInt

    def room_tokens(self, ask: Ask) -> int:
        """The tokens that must stay free in the context, for the answer or the next look-up."""
        (look_up,) = self.prompts
        return max(ask.max_reply_tokens(AnswerQuestion), ask.max_reply_tokens(look_up))

    @abstractmethod
    def prompt(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Prompt[Any]: ...

    async def has_room(
        self, rows: UnitRows, question: Question, used: Sequence[int], ask: Ask
    ) -> bool:
        """True if the pages `used` leave room for what follows, in context and budget.

        The look-up's prompt is counted in place of the answer's, which is never longer (tested for
        every family): look-ups are not redone when the answer's prompt changes.
        """
        fits = await ask.fits(self.prompt(rows, question, used), self.room_tokens(ask))
        return fits and await self.within_budget(rows, used, ask)

    async def within_budget(self, rows: UnitRows, used: Sequence[int], ask: Ask) -> bool:
        if self.budget is None:
            return True
        return await ask.part_tokens(self.memory(rows, used).parts) <= self.budget

    def refusal(self, rows: UnitRows, page_index: int, used: Sequence[int]) -> str | None:
        """Why a requested page cannot be read: out_of_range or duplicate; None if it can."""
        if not 0 <= page_index < len(rows[Page]):
            return "out_of_range"
        return "duplicate" if page_index in used else None


class ReadAgentP(_FromGists):
    """ReadAgent-P: one reply names all pages, the most important first; `max_pages` are read."""

    kind = "parallel"
    version = 1
    prompts = (ParallelLookUp,)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """One turn. Problems: unparseable, truncated (nothing used, the gists remain);
        context_overflow, timeout, refused, engine_failed (used is None)."""
        row = Lookup.about(question)
        if not await self.within_budget(rows, (), ask):
            return [row]
        subject = Subject(question_id=question.question_id, turn=0)
        reply = await ask(self.prompt(rows, question, ()), subject)
        if not reply.has_reply:
            return [replace(row, used=None, problem=reply.problem)]
        if reply.value is None:
            return [replace(row, problem=reply.problem)]
        requested = tuple(number - self.first_page for number in reply.value)
        used: list[int] = []
        dropped: list[Dropped] = []
        has_room = True  # once a page does not fit the context, no later one is used
        for index in requested:
            reason = self.refusal(rows, index, used)
            if reason is None and len(used) == self.max_pages:
                reason = "over_maximum"
            if reason is None:
                more = [*used, index]
                has_room = has_room and await self.has_room(rows, question, more, ask)
                reason = None if has_room else "no_room"
            if reason is None:
                used.append(index)
            else:
                dropped.append(Dropped(index, reason))
        return [replace(row, requested=requested, used=tuple(used), dropped=tuple(dropped))]

    def prompt(self, rows: UnitRows, question: Question, used: Sequence[int]) -> ParallelLookUp:
        return ParallelLookUp(
            self.memory(rows, used).passages, **fields_of(question), max_pages=self.max_pages
        )


class ReadAgentS(_FromGists):
    """ReadAgent-S: one page per turn until STOP or `max_pages`, shown the pages read so far.

    If the reply names no page, one that does not exist or one already read, the turn is asked once
    more, saying so; then the look-up stops. With `answer_each_look_up` each prompt shows an answer
    made from the pages read so far (ReadAgent's prompts for NarrativeQA film scripts), unless it
    failed.
    """

    kind = "sequential"
    version = 1
    prompts = (SequentialLookUp,)
    asks_in_turn = True
    answer_each_look_up: bool
    answer_words: PositiveInt | None  # the length asked of those answers; null: brief
    answer_page_tags: bool  # whether their prompts show page numbers

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return (*self.prompts, AnswerQuestion) if self.answer_each_look_up else self.prompts

    def room_tokens(self, ask: Ask) -> int:
        if not self.answer_each_look_up:
            return super().room_tokens(ask)
        # The next look-up prompt contains an answer, and its reply must fit, too.
        return ask.max_reply_tokens(AnswerQuestion) + ask.max_reply_tokens(SequentialLookUp)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """One row per turn; STOP is a row with empty `used`. Problems: unparseable, truncated (the
        look-up stops); context_overflow, timeout, refused, engine_failed (`used` is None)."""
        if not await self.within_budget(rows, (), ask):
            return [Lookup.about(question)]
        turns: list[Lookup] = []
        used: list[int] = []
        while len(used) < self.max_pages:
            turns.append(await self._turn(rows, question, len(turns), used, ask))
            if not turns[-1].used:
                break
            used += turns[-1].used
        return turns

    async def _turn(
        self, rows: UnitRows, question: Question, turn: int, used: Sequence[int], ask: Ask
    ) -> Lookup:
        row = Lookup.about(question, turn=turn)
        problem: Problem | None = None
        previous = await self._previous_answer(rows, question, turn, used, ask)
        for attempt in (1, 2):
            prompt = replace(
                self.prompt(rows, question, used),
                refused=tuple(drop.page_index + self.first_page for drop in row.dropped),
                previous_answer=previous,
                last_was_unread=problem is not None,
            )
            subject = Subject(question_id=question.question_id, turn=turn, attempt=attempt)
            reply = await ask(prompt, subject)
            if reply.problem == "context_overflow" and attempt > 1:
                break  # no room to say what was wrong: stop here
            if not reply.has_reply:
                return Lookup.about(question, turn=turn, used=None, problem=reply.problem)
            if reply.value == "stop":
                return row
            problem = reply.problem
            if reply.value is None:
                continue
            index = reply.value - self.first_page
            row = replace(row, requested=(*row.requested, index))
            reason = self.refusal(rows, index, used)
            if reason is None:
                if await self.has_room(rows, question, [*used, index], ask):
                    return replace(row, used=(index,))
                reason = "no_room"
            row = replace(row, dropped=(*row.dropped, Dropped(index, reason)))
            if reason == "no_room":
                return row
        # An illegal page is recorded in `dropped`; naming no page at all twice is a problem.
        return replace(row, problem=None if row.requested else problem)

    def prompt(self, rows: UnitRows, question: Question, used: Sequence[int]) -> SequentialLookUp:
        return SequentialLookUp(
            passages=self.memory(rows, used).passages,
            **fields_of(question),
            pages_read=tuple(index + self.first_page for index in used),
            refused=(),
        )

    async def _previous_answer(
        self, rows: UnitRows, question: Question, turn: int, used: Sequence[int], ask: Ask
    ) -> str:
        """An answer from the pages read so far, for the look-up prompt; "" for none."""
        if not self.answer_each_look_up:
            return ""
        prompt = AnswerQuestion(
            passages=shown(self.memory(rows, used).passages, self.answer_page_tags),
            **fields_of(question),
            answer_words=self.answer_words,
        )
        reply = await ask(prompt, Subject(question_id=question.question_id, turn=turn))
        return reply.raw.strip() if reply.has_reply else ""

"""Which pages to read again for a question: ReadAgent-P and -S, and no look-up at all.

ReadAgent section 3.2; context control as in appendix H. Page numbers in prompts and replies start
with the family's `first_page`; rows hold page indexes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import PositiveInt

from pipeline.ask import Ask, Subject
from pipeline.engine import Constraint, Reply
from pipeline.errors import Problem
from pipeline.records import Dropped, Lookup, Question, Record
from pipeline.stage import DocumentRows, Stage, refuse_gaps
from stages import constraints
from stages.context import memory
from stages.fields import AnswerQuestion, ParallelLookUp, Passage, SequentialLookUp
from stages.parsing import parse_page_list, parse_page_or_stop, parse_pages


class LookUp(Stage):
    """The base of every strategy: a question's turns, from 0, are its rows."""

    name: ClassVar[str] = "look_up"
    version: ClassVar[int] = 1
    writes: ClassVar[type[Record]] = Lookup

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Lookup]:
        """Questions -> their Lookups, in question order, then by turn. Problems: see `turns`."""
        found = await asyncio.gather(*(self.turns(rows, q, ask) for q in rows.questions))
        return [turn for turns in found for turn in turns]

    async def turns(self, rows: DocumentRows, question: Question, ask: Ask) -> list[Lookup]:
        """The look-up turns of one question; `used` is null where it failed for good."""
        return [turn_row(question)]

    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> list[Lookup]:
        return [
            replace(turn_row(question), used=None, problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has its turns, from 0, without a gap."""
        refuse_gaps(rows, made, "turn")


def turn_row(question: Question, turn: int = 0) -> Lookup:
    """A turn that asked for nothing and used nothing."""
    return Lookup(document_id=question.document_id, question_id=question.question_id, turn=turn)


class NoLookUp(LookUp):
    """For methods that look nothing up: turn 0, nothing used. No calls."""

    strategy: Literal["none"] = "none"
    reads: ClassVar[tuple[str, ...]] = ()


class _FromGists(LookUp):
    reads: ClassVar[tuple[str, ...]] = ("pages", "gists")
    max_pages: PositiveInt
    first_page: int
    max_reply_tokens: PositiveInt
    answer_reply_tokens: PositiveInt  # what must stay free for the answer

    def room_tokens(self) -> int:
        """What must stay free once a page is taken: the answer, or the next look-up's reply."""
        return max(self.answer_reply_tokens, self.max_reply_tokens)

    def passages(self, rows: DocumentRows, used: Sequence[int]) -> tuple[Passage, ...]:
        return memory(rows, used, self.first_page).passages

    def numbers(self, rows: DocumentRows) -> range:
        """The document's page numbers, as prompts show them."""
        return range(self.first_page, self.first_page + len(rows.pages))

    def refusal(self, rows: DocumentRows, page_index: int, used: Sequence[int]) -> str | None:
        """Why a page asked for cannot be read, if so: its place in the document, then the rest."""
        if not 0 <= page_index < len(rows.pages):
            return "out_of_range"
        return "duplicate" if page_index in used else None


class ReadAgentP(_FromGists):
    """All pages in one reply, the most important first; at most `max_pages` are read."""

    strategy: Literal["parallel"] = "parallel"
    prompts: ClassVar[tuple[str, ...]] = ("look_up_p",)

    async def turns(self, rows: DocumentRows, question: Question, ask: Ask) -> list[Lookup]:
        """One turn. Problems: unparseable, truncated (nothing used, the gists remain);
        context_overflow, timeout, engine_failed (used is null)."""
        fields = self._fields(rows, question, ())
        subject = Subject(question_id=question.question_id, turn=0)
        form = ask.form(fields.prompt)
        legal = constraints.page_list(form, self.numbers(rows), self.max_pages)
        reply = await ask(fields, self.max_reply_tokens, subject, legal)
        if reply.problem not in (None, "truncated"):
            return [replace(turn_row(question), used=None, problem=reply.problem)]
        read = parse_page_list if reply.problem else parse_pages  # cut: only a closed list counts
        requested = read(reply.text)
        if requested is None:
            return [replace(turn_row(question), problem=reply.problem or "unparseable")]
        indexes = [number - self.first_page for number in requested]
        used, dropped = await self._select(rows, question, indexes, ask)
        return [replace(turn_row(question), requested=tuple(indexes), used=used, dropped=dropped)]

    async def _select(
        self, rows: DocumentRows, question: Question, requested: Sequence[int], ask: Ask
    ) -> tuple[tuple[int, ...], tuple[Dropped, ...]]:
        """Take pages in the order asked for; stop at the first that the context has no room for."""
        used: list[int] = []
        dropped: list[Dropped] = []
        has_room = True
        for index in requested:
            reason = self.refusal(rows, index, used)
            if reason is None and len(used) == self.max_pages:
                reason = "over_maximum"
            if reason is None:
                has_room = has_room and await self._fits(rows, question, [*used, index], ask)
                reason = None if has_room else "no_room"
            if reason is None:
                used.append(index)
            else:
                dropped.append(Dropped(index, reason))
        return tuple(used), tuple(dropped)

    async def _fits(
        self, rows: DocumentRows, question: Question, used: Sequence[int], ask: Ask
    ) -> bool:
        # The look-up prompt is never shorter than the answer prompt (a test of every family), so
        # it stands for it here: a changed answer prompt then redoes no look-up.
        return await ask.fits(self._fields(rows, question, used), self.room_tokens())

    def _fields(
        self, rows: DocumentRows, question: Question, used: Sequence[int]
    ) -> ParallelLookUp:
        return ParallelLookUp(
            passages=self.passages(rows, used),
            question=question.question,
            options=question.options,
            max_pages=self.max_pages,
            asked_at=question.asked_at or "",
        )


class ReadAgentS(_FromGists):
    """One page a turn, the pages read so far in their gists' place, until STOP or `max_pages`.

    A page that is not there or was read already, or a reply that names none, is asked about once
    more; if that does not help the look-up stops.
    """

    strategy: Literal["sequential"] = "sequential"
    prompts: ClassVar[tuple[str, ...]] = ("look_up_s",)

    async def turns(self, rows: DocumentRows, question: Question, ask: Ask) -> list[Lookup]:
        """A row per turn asked; STOP is a row that uses nothing. Problems: unparseable (it
        stops); context_overflow, timeout, engine_failed (used is null)."""
        found: list[Lookup] = []
        used: list[int] = []
        while len(used) < self.max_pages:
            row = await self._turn(rows, question, len(found), used, ask)
            found.append(row)
            if not row.used:
                break
            used += row.used
        return found

    async def _turn(
        self, rows: DocumentRows, question: Question, turn: int, used: Sequence[int], ask: Ask
    ) -> Lookup:
        row = turn_row(question, turn)
        requested: list[int] = []
        dropped: list[Dropped] = []
        previous = await self.previous_answer(rows, question, turn, used, ask)
        for attempt in (1, 2):
            refused = [drop.page_index for drop in dropped]
            fields = replace(self._fields(rows, question, used, refused), previous_answer=previous)
            subject = Subject(question_id=question.question_id, turn=turn, attempt=attempt)
            legal = self._legal(rows, fields, ask)
            reply = await ask(fields, self.max_reply_tokens, subject, legal)
            if reply.problem == "context_overflow" and dropped:
                break  # no room to name the page refused: what was read so far has to do
            if reply.problem not in (None, "truncated"):
                return replace(row, used=None, problem=reply.problem)
            choice = parse_page_or_stop(reply.text)
            if choice == "stop":
                return replace(row, requested=tuple(requested), dropped=tuple(dropped))
            if choice is None:
                continue
            index = choice - self.first_page
            requested.append(index)
            reason = self.refusal(rows, index, used)
            reason = reason or await self._room(rows, question, used, index, ask)
            if reason is None:
                return replace(
                    row, requested=tuple(requested), used=(index,), dropped=tuple(dropped)
                )
            dropped.append(Dropped(index, reason))
            if reason == "no_room":
                return replace(row, requested=tuple(requested), dropped=tuple(dropped))
        problem = _unread(reply, requested)
        return replace(row, requested=tuple(requested), dropped=tuple(dropped), problem=problem)

    async def previous_answer(
        self, rows: DocumentRows, question: Question, turn: int, used: Sequence[int], ask: Ask
    ) -> str:
        """What the look-up is shown of an answer so far."""
        return ""

    def _legal(self, rows: DocumentRows, fields: SequentialLookUp, ask: Ask) -> Constraint | None:
        taken = {*fields.pages_read, *fields.refused}
        left = [number for number in self.numbers(rows) if number not in taken]
        return constraints.page_or_stop(ask.form(fields.prompt), left)

    async def _room(
        self, rows: DocumentRows, question: Question, used: Sequence[int], index: int, ask: Ask
    ) -> str | None:
        fields = self._fields(rows, question, [*used, index], ())
        return None if await ask.fits(fields, self.room_tokens()) else "no_room"

    def _fields(
        self,
        rows: DocumentRows,
        question: Question,
        used: Sequence[int],
        refused: Sequence[int],
    ) -> SequentialLookUp:
        return SequentialLookUp(
            passages=self.passages(rows, used),
            question=question.question,
            options=question.options,
            pages_read=tuple(index + self.first_page for index in used),
            refused=tuple(index + self.first_page for index in refused),
            asked_at=question.asked_at or "",
        )


class ReadAgentSAnswering(ReadAgentS):
    """With an answer before each look-up, from what has been read so far, which the look-up is
    shown (ReadAgent's prompts for NarrativeQA's film scripts). An answer that fails is not shown.
    """

    strategy: Literal["sequential_answering"] = "sequential_answering"  # type: ignore[assignment]  # not its parent's
    prompts: ClassVar[tuple[str, ...]] = ("look_up_s", "answer")
    answer_words: PositiveInt

    def room_tokens(self) -> int:
        """The next look-up shows an answer and replies."""
        return self.answer_reply_tokens + self.max_reply_tokens

    async def previous_answer(
        self, rows: DocumentRows, question: Question, turn: int, used: Sequence[int], ask: Ask
    ) -> str:
        fields = AnswerQuestion(
            passages=self.passages(rows, used),
            question=question.question,
            options=question.options,
            answer_words=self.answer_words,
            asked_at=question.asked_at or "",
        )
        subject = Subject(question_id=question.question_id, turn=turn)
        legal = constraints.option(ask.form(fields.prompt), len(question.options))
        reply = await ask(fields, self.answer_reply_tokens, subject, legal)
        return reply.text.strip() if reply.problem in (None, "truncated") else ""


def _unread(reply: Reply, requested: Sequence[int]) -> Problem | None:
    """The problem of a turn that named no page twice over; a wrong page is in `dropped`."""
    return None if requested else (reply.problem or "unparseable")

"""Answer each question from the document's text, a summary that is carried from segment to segment,
chunks or visits; and baselines without any of these."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.rows import Question, QuestionRow, Span, UnitRows
from pipeline.work.stage import Stage
from stages.index.context import Context, fields_of, raw_pages
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.memwalker import UpdateSummary
from stages.query.make_queries import searched
from stages.read.answer_from_context import AnswerFromContext
from stages.retrieve.look_up import used_pages
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup, Query, Visit
from stages.tables.pages import Page, RunningSummary
from stages.text.fit_to_limit import Keep, first_segment, largest_part, segments
from stages.text.words import num_words, word_spans


def _text_span(text: str, start: int, end: int) -> Context:
    return Context(
        passages=(Passage("text", None, text[start:end].strip()),),
        spans=(Span(start, end),),
        num_words=num_words(text[start:end]),
    )


class AnswerFromText(AnswerFromContext):
    """From the document's text, or its first or last `num_words` words (section 4.2), counted as
    `truncate_by` says: `words`, or `spaces` for the pieces between single spaces."""

    kind = "text"
    version = 1
    reads = (Lookup,)
    keep: Keep | None  # null: all of it
    num_words: PositiveInt | None
    truncate_by: Literal["words", "spaces"]

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        text, most = rows.document.text, self.num_words
        start, end = 0, len(text)
        if self.keep is None or most is None:
            pass
        elif self.truncate_by == "spaces":  # line breaks do not separate
            words = text.split(" ")
            if self.keep == "first":
                end = len(" ".join(words[:most]))
            else:
                start = end - len(" ".join(words[-most:]))
        elif rows.document.num_words > most:
            spans = word_spans(text)
            if self.keep == "first":
                end = spans[most - 1][1]
            else:
                start = spans[-most][0]
        return _text_span(text, start, end)


class AnswerFromTruncatedText(AnswerFromContext):
    """From the first or last words of the text that fit the engine's context, in its tokens, with
    the question and the reply (MemWalker section 4: full context, `first` its keep left, `last` its
    keep right). A text that fits is shown whole.
    """

    kind = "truncated_text"
    version = 2
    reads = (Lookup,)
    keep: Keep

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return self._part(rows.document.text, len(rows.document.text))

    def _part(self, text: str, num_chars: int) -> Context:
        start = 0 if self.keep == "first" else len(text) - num_chars
        return _text_span(text, start, start + num_chars)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """Cuts the text to context and budget. Problem: context_overflow if no word fits."""
        text = rows.document.text

        async def prompt_tokens(num_chars: int) -> int:
            return await ask.num_tokens(self.prompt(question, self._part(text, num_chars)))

        async def tokens(num_chars: int) -> int:
            return await ask.part_tokens(self._part(text, num_chars).parts)

        room = ask.context_tokens - ask.max_reply_tokens(AnswerQuestion)
        num_chars = await largest_part(text, self.keep, room, prompt_tokens)
        if self.budget is not None:
            num_chars = min(num_chars, await largest_part(text, self.keep, self.budget, tokens))
        if not num_chars and text.strip():
            detail = "no room for any word of the text"
            return replace(empty, problem="context_overflow", detail=detail)
        return await self.answer(empty, question, self._part(text, num_chars), ask)


class AnswerClosedBook(AnswerFromContext):
    """From the question alone: a lower baseline."""

    kind = "nothing"
    version = 1
    reads = (Lookup,)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return Context()


class AnswerConstant(AnswerClosedBook):
    """One answer to every question, the first of any options: a lower baseline. No calls."""

    kind = "constant"
    version = 1
    prompts = ()
    constant_answer: str

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        text = "Answer: (A)" if question.options else self.constant_answer
        return replace(
            self.with_context(empty, Context(), 0),
            reader="constant",
            answer=text,
            answer_index=0 if question.options else None,
            num_answer_words=num_words(text),
        )


LastSegment = Literal["summarized", "read"]
_WORDS_PER_TOKEN = 0.75  # of English prose; texts in other languages have fewer


class UpdateRunningSummary(Stage):
    """The recurrence baseline (MemWalker section 4, after Xu et al. 2022): segments of at most
    `segment_tokens` are read in order, each with a summary of the segments before, which has at
    most `summary_tokens`, in the engine's tokens. With `asks_question`, which the paper leaves
    open, prompts show the question, and the document is read once for each; otherwise it is read
    once for all. `last_segment`: summarized as the others are, or left for the answer to read with
    the summary before it (Xu et al.). The prompt asks for as many words as `summary_tokens` usually
    are.
    """

    name = "update_summary"
    version = 3
    writes = RunningSummary
    prompts = (UpdateSummary,)
    asks_in_turn = True
    segment_tokens: PositiveInt
    summary_tokens: PositiveInt
    asks_question: bool
    last_segment: LastSegment

    async def run(self, rows: UnitRows, ask: Ask) -> list[RunningSummary]:
        """Questions -> a RunningSummary per segment each, in question order, then by segment.

        Problems: truncated (longer than `summary_tokens` or the reply budget; cut there); with the
        previous summary: unparseable (no text), context_overflow, timeout, refused, engine_failed,
        empty_input (the document has no words). A segment left to be read takes over the problem of
        the one before if that has no summary.
        """
        text = rows.document.text
        spans = await segments(text, self.segment_tokens, ask.text_tokens) or [(0, 0)]
        readers = rows.questions if self.asks_question else rows.questions[:1]
        ask.progress.tell(len(spans) * len(readers), 0)
        of_readers = await asyncio.gather(*(self._read(text, spans, q, ask) for q in readers))
        summaries = of_readers if self.asks_question else of_readers * len(rows.questions)
        return [
            replace(row, question_id=question.question_id)
            for question, of_question in zip(rows.questions, summaries, strict=True)
            for row in of_question
        ]

    async def _read(
        self, text: str, spans: Sequence[tuple[int, int]], question: Question, ask: Ask
    ) -> list[RunningSummary]:
        done: list[RunningSummary] = []
        summary: str | None = None
        problem: Problem | None = None
        for index, (start, end) in enumerate(spans):
            segment = text[start:end].strip()
            if not segment:
                problem = "empty_input"
            elif self.last_segment == "read" and index == len(spans) - 1:
                problem = problem if summary is None and done else None
                summary = summary if done else ""
            else:
                summary, problem = await self._update(index, segment, summary, question, ask)
            row = RunningSummary.about(
                question, segment_index=index, start_char=start, end_char=end, summary=summary
            )
            done.append(replace(row, num_words=num_words(summary or ""), problem=problem))
            ask.progress.done += 1
        return done

    async def _update(
        self, index: int, segment: str, before: str | None, question: Question, ask: Ask
    ) -> tuple[str | None, Problem | None]:
        shown = fields_of(question) if self.asks_question else {"question": "", "options": ()}
        words = max(1, int(_WORDS_PER_TOKEN * self.summary_tokens))
        prompt = UpdateSummary(segment=segment, summary=before or "", max_words=words, **shown)
        subject = Subject(question_id=question.question_id, turn=index)
        # Other units have further questions about the document: they take these replies.
        reply = await ask(prompt, subject, is_shared=not self.asks_question)
        if reply.value is None:
            return before, reply.problem
        summary = await first_segment(reply.value, self.summary_tokens, ask.text_tokens)
        return summary, "truncated" if summary != reply.value else reply.problem


class AnswerFromRunningSummary(AnswerFromContext):
    """From the summary after the last segment (MemWalker section 4, recurrence); with
    `last_segment` read, from that segment and the summary before it. If no segment gave a summary,
    the answer is an `upstream` row."""

    kind = "running_summary"
    version = 2
    reads = (RunningSummary,)
    last_segment: LastSegment

    def needed(self, rows: UnitRows, question: Question) -> Sequence[QuestionRow]:
        return rows.of(RunningSummary, question)[-1:]

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        (last,) = self.needed(rows, question)
        assert isinstance(last, RunningSummary)
        summary = (Passage("gist", None, last.summary),) if last.summary else ()
        if self.last_segment == "summarized":
            return Context(passages=summary, num_words=last.num_words)
        raw = _text_span(rows.document.text, last.start_char, last.end_char)
        words = last.num_words + raw.num_words
        return replace(raw, passages=(*summary, *raw.passages), num_words=words)


class AnswerFromChunks(AnswerFromContext):
    """From the pages that were found, in document order. If a draft of the answer was searched for,
    it stands after them, as in the authors' code, and counts as read."""

    kind = "chunks"
    version = 2
    reads = (Page, Query, Lookup)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        pages = raw_pages(rows, used, self.first_page)
        if not used:
            return pages
        drafts = [q.text or "" for q in searched(rows, question) if q.kind == "draft"]
        notes = tuple(Passage("text", None, f"(A guess, made from memory: {d})") for d in drafts)
        return replace(
            pages,
            passages=(*pages.passages, *notes),
            num_words=pages.num_words + sum(map(num_words, drafts)),
            counted=(*pages.parts, *drafts),
        )


class AnswerFromVisits(AnswerFromContext):
    """The answer given at the last node visited; its segment and the working memory shown with it
    are the final context. No calls."""

    kind = "visits"
    version = 1
    reads = (Page, Visit, Lookup)
    prompts = ()

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        last = rows.of(Visit, question)[-1]
        pages = raw_pages(rows, used, self.first_page)
        return replace(pages, num_words=pages.num_words + last.num_memory_words)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """Problems: as the last visit's; no_answer if the navigation ended without one."""
        last = rows.of(Visit, question)[-1]
        empty = replace(empty, reader=last.reader)
        if last.answer is None:
            detail = "stopped at max_steps" if last.to_node is not None else None
            return replace(empty, problem=last.problem or "no_answer", detail=detail)
        context = self.context(rows, question, used_pages(rows, question))
        return replace(
            self.with_context(empty, context, last.num_context_tokens),
            answer=last.answer,
            answer_index=last.answer_index,
            num_answer_words=num_words(last.answer),
            problem=last.problem,
        )

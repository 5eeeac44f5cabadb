"""Read a document segment by segment, carrying a summary for each question along."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import Problem
from pipeline.core.rows import Question, UnitRows
from pipeline.work.stage import Stage
from stages.index.paginate import first_segment, segments
from stages.prompts.memwalker import UpdateSummary
from stages.tables.pages import RunningSummary
from stages.text.words import num_words

LastSegment = Literal["summarized", "read"]
_WORDS_PER_TOKEN = 0.75  # of English prose; in other languages a text has fewer words a token


class UpdateRunningSummary(Stage):
    """The recurrence baseline (MemWalker section 4, after Xu et al. 2022): segments of at most
    `segment_tokens` are read in order, each with the summary of at most `summary_tokens` of those
    before, in the engine's tokens. The paper does not say whether its summaries know the question.
    With `asks_question` they do, and the document is read once for each; else once for all.
    `last_segment`: summarized as all others, or left for the answer to read with the summary of
    those before (Xu et al.).

    A summary may be as long as `reply_tokens.update_summary` lets it; the prompt asks for words, as
    many as `summary_tokens` usually are.
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
        read = await asyncio.gather(*(self._read(text, spans, q, ask) for q in readers))
        made = {q.question_id: own for q, own in zip(readers, read, strict=True)}
        return [
            replace(row, question_id=question.question_id)
            for question in rows.questions
            for row in made.get(question.question_id, read[0])
        ]

    async def _read(
        self, text: str, spans: Sequence[tuple[int, int]], question: Question, ask: Ask
    ) -> list[RunningSummary]:
        done: list[RunningSummary] = []
        for index, (start, end) in enumerate(spans):
            row = RunningSummary.about(
                question, segment_index=index, start_char=start, end_char=end
            )
            before = done[-1].summary if done else None
            segment = text[row.start_char : row.end_char].strip()
            if self.last_segment == "read" and index == len(spans) - 1:
                done.append(_left(row, segment, done[-1] if done else None))
            else:
                done.append(await self._update(row, segment, before, question, ask))
            ask.progress.done += 1
        return done

    async def _update(
        self, row: RunningSummary, segment: str, before: str | None, question: Question, ask: Ask
    ) -> RunningSummary:
        if not segment:
            return _with(row, before, "empty_input")
        prompt = UpdateSummary(
            segment=segment,
            summary=before or "",
            question=question.question if self.asks_question else "",
            options=question.options if self.asks_question else (),
            max_words=max(1, int(_WORDS_PER_TOKEN * self.summary_tokens)),
            asked_at=(question.asked_at or "") if self.asks_question else "",
        )
        subject = Subject(question_id=question.question_id, turn=row.segment_index)
        # Other units have further questions about the document: they take these replies.
        asked = await ask(prompt, subject, is_shared=not self.asks_question)
        if asked.value is None:
            return _with(row, before, asked.problem)
        summary = await first_segment(asked.value, self.summary_tokens, ask.text_tokens)
        return _with(row, summary, "truncated" if summary != asked.value else asked.problem)


def _left(row: RunningSummary, segment: str, last: RunningSummary | None) -> RunningSummary:
    """A segment left for the answer to read: its row repeats the summary before it."""
    if not segment:
        return _with(row, last.summary if last else None, "empty_input")
    if last is None:
        return _with(row, "", None)
    return _with(row, last.summary, last.problem if last.summary is None else None)


def _with(row: RunningSummary, summary: str | None, problem: Problem | None) -> RunningSummary:
    return replace(row, summary=summary, num_words=num_words(summary or ""), problem=problem)

"""Answer each question from the document's text, a summary, chunks, visits or the trajectories of a
search; and baselines without any of these."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, QuestionRow, UnitRows
from stages.index.context import Context, TruncateBy, raw_pages, raw_text, text_span
from stages.prompts.answer import Passage
from stages.query.make_queries import searched
from stages.read.answer_from_context import AnswerFromContext, AnswerFromPages, room_tokens
from stages.read.recurrence import LastSegment
from stages.retrieve.look_up import used_pages
from stages.retrieve.search import needed_steps
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup, Query, Refinement, Visit
from stages.tables.pages import Page, RunningSummary
from stages.text.fit_to_limit import Keep, largest_part
from stages.text.words import num_words


class AnswerFromText(AnswerFromContext):
    """From the document's text, or its first or last `num_words` words (section 4.2), counted as
    `truncate_by` says: `words`, or `spaces` for what stands between single spaces."""

    kind = "text"
    version = 1
    reads = (Lookup,)
    keep: Keep | None  # null: all of it
    num_words: PositiveInt | None
    truncate_by: TruncateBy

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return raw_text(rows, self.keep, self.num_words, self.truncate_by)


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
        return self._kept(rows, len(rows.document.text))

    def _kept(self, rows: UnitRows, num_chars: int) -> Context:
        text = rows.document.text
        start = 0 if self.keep == "first" else len(text) - num_chars
        return text_span(text, start, start + num_chars)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """Cuts the text to context and budget. Problem: context_overflow if no word fits."""

        async def size(num_chars: int) -> int:
            return await ask.num_tokens(self.prompt(question, self._kept(rows, num_chars)))

        async def own_size(num_chars: int) -> int:
            return await ask.part_tokens(self._kept(rows, num_chars).parts)

        text = rows.document.text
        num_chars = await largest_part(text, self.keep, room_tokens(ask), size)
        if self.budget is not None:
            num_chars = min(num_chars, await largest_part(text, self.keep, self.budget, own_size))
        if not num_chars and text.strip():
            detail = "no room for any word of the text"
            return replace(empty, problem="context_overflow", detail=detail)
        return await self.answer(empty, question, self._kept(rows, num_chars), ask)


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


class AnswerFromRunningSummary(AnswerFromContext):
    """From the summary after the last segment (MemWalker section 4, recurrence); with
    `last_segment` read, from that segment and the summary of those before. Where no segment gave a
    summary, the answer is an `upstream` row."""

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
        raw = text_span(rows.document.text, last.start_char, last.end_char)
        words = last.num_words + raw.num_words
        return replace(raw, passages=(*summary, *raw.passages), num_words=words)


class AnswerFromChunks(AnswerFromContext):
    """From the pages that were found, in document order. A draft of the answer, where one was
    searched for, stands after them, as the authors' code has it; its words count as read. Without
    pages it is not shown."""

    kind = "chunks"
    version = 2
    reads = (Page, Query, Lookup)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        found = raw_pages(rows, used, self.first_page)
        if not used:
            return found
        drafts = [q.text or "" for q in searched(rows, question) if q.kind == "draft"]
        notes = tuple(Passage("text", None, f"(A guess, made from memory: {d})") for d in drafts)
        return replace(
            found,
            passages=(*found.passages, *notes),
            num_words=found.num_words + sum(map(num_words, drafts)),
            counted=(*found.parts, *drafts),
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
        found = raw_pages(rows, used, self.first_page)
        return replace(found, num_words=found.num_words + last.num_memory_words)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """Problems: those of the last visit; no_answer where the navigation ended without one."""
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


class AnswerFromTrajectories(AnswerFromPages):
    """From the pages that each trajectory found, in document order; the answer is the one that
    agrees best with the others, by their shared words (of options: the most frequent letter), of
    several the first. The paper chooses by the likelihood that its model gives an answer
    (perplexity, confidence), or by the confidence of all trajectories with the same answer; a
    server says no likelihoods, and agreement is the last of these without them.
    """

    kind = "trajectories"
    version = 2
    reads = (Page, Refinement, Lookup)

    def needed(self, rows: UnitRows, question: Question) -> Sequence[QuestionRow]:
        return [*needed_steps(rows.of(Refinement, question)), *rows.of(Lookup, question)]

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """One call for each trajectory, with as many of its pages as fit; `detail` names the chosen
        one. If each has a problem, the first with a text is chosen. If some trajectories found
        pages and none of these fits, those that found nothing do not replace them."""
        steps = rows.of(Refinement, question)
        numbers = sorted({step.trajectory for step in steps})
        made = await asyncio.gather(
            *(self._of_trajectory(empty, rows, question, number, ask) for number in numbers)
        )
        fine = [n for n, answer in enumerate(made) if answer.answer and not answer.problem]
        overflows = [answer for answer in made if answer.problem == "context_overflow"]
        if overflows and not any(answer.page_indexes for answer in made):
            return overflows[0]
        if not fine:
            return next((answer for answer in made if answer.answer), made[0])
        words = [_words(answer) for answer in made]
        best = max(fine, key=lambda n: sum(_shared(words[n], words[m]) for m in fine if m != n))
        details = [f"trajectory {numbers[best]} of {len(numbers)}", made[best].detail]
        return replace(made[best], detail=", ".join(filter(None, details)))

    async def _of_trajectory(
        self, empty: Answer, rows: UnitRows, question: Question, number: int, ask: Ask
    ) -> Answer:
        steps = [step for step in rows.of(Refinement, question) if step.trajectory == number]
        used = [page for step in steps for page in step.used]
        return await self.answer_from(used, empty, rows, question, ask, turn=number)


def _words(answer: Answer) -> Counter[str]:
    chosen = answer.answer_index
    return Counter((answer.answer or "").lower().split() if chosen is None else [str(chosen)])


def _shared(one: Counter[str], other: Counter[str]) -> float:
    """F1 of the words, 0 to 1."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())

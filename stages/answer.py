"""Answer each question from what its method has looked up. One class per kind of context."""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import ClassVar, Literal

from pydantic import PositiveInt

from pipeline.ask import Ask, Subject
from pipeline.errors import AccountingError, Problem
from pipeline.records import Answer, Lookup, Question, Record
from pipeline.stage import DocumentRows, Stage
from stages import constraints
from stages.context import Context, memory, raw_pages, raw_text
from stages.fields import AnswerQuestion
from stages.parsing import parse_option
from stages.words import num_words


class AnswerFromContext(Stage):
    """The base: subclasses say what the final context is.

    `answer_words`: about how long a free-form answer should be. A failed look-up's question
    becomes an `upstream` row, a skipped one a skipped row.
    """

    name: ClassVar[str] = "answer"
    version: ClassVar[int] = 1
    writes: ClassVar[type[Record]] = Answer
    prompts: ClassVar[tuple[str, ...]] = ("answer",)
    first_page: int
    answer_words: PositiveInt
    max_reply_tokens: PositiveInt

    @abstractmethod
    def context(self, rows: DocumentRows, used: Sequence[int]) -> Context:
        """What the reader is shown, given the page indexes looked up."""

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Answer]:
        """Questions + their Lookups -> one Answer each, in question order.

        Problems: context_overflow, timeout, engine_failed (no answer); truncated, unparseable,
        out_of_range (the text is kept); upstream.
        """
        return list(await asyncio.gather(*(self._one(rows, q, ask) for q in rows.questions)))

    async def _one(self, rows: DocumentRows, question: Question, ask: Ask) -> Answer:
        turns = [row for row in rows.lookups if row.question_id == question.question_id]
        empty = self._empty(rows, question, ask.engine_name)
        if any(turn.skipped for turn in turns):
            return replace(empty, skipped=True)
        if any(turn.used is None for turn in turns):
            return replace(empty, problem="upstream", detail=_reasons(turns))
        used = list(chain.from_iterable(turn.used or () for turn in turns))
        return await self.answer(empty, question, self.context(rows, used), ask)

    async def answer(self, empty: Answer, question: Question, context: Context, ask: Ask) -> Answer:
        """`empty` with the reply filled in, and the context it was made from."""
        fields = AnswerQuestion(
            passages=context.passages,
            question=question.question,
            options=question.options,
            answer_words=self.answer_words,
            asked_at=question.asked_at or "",
        )
        subject = Subject(question_id=question.question_id)
        legal = constraints.option(ask.form(fields.prompt), len(question.options))
        reply = await ask(fields, self.max_reply_tokens, subject, legal)
        if reply.problem not in (None, "truncated"):
            return replace(empty, problem=reply.problem)
        text = reply.text.strip()
        option, problem = _option(text, len(question.options))
        return replace(
            _with_context(empty, context),
            answer=text,
            answer_index=option,
            num_answer_words=num_words(text),
            problem=reply.problem or problem,
        )

    def _empty(self, rows: DocumentRows, question: Question, reader: str) -> Answer:
        return Answer(
            document_id=question.document_id,
            question_id=question.question_id,
            reader=reader,
            answer=None,
            num_document_words=rows.document.num_words,
        )

    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> list[Answer]:
        return [
            replace(self._empty(rows, question, ""), problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has exactly one answer, in order."""
        answered = [answer.question_id for answer in made if isinstance(answer, Answer)]
        if answered != [question.question_id for question in rows.questions]:
            raise AccountingError(f"{rows.document.document_id}: answers do not match questions")


def _reasons(turns: Sequence[Lookup]) -> str:
    return "look_up: " + ", ".join(turn.problem or "" for turn in turns if turn.used is None)


def _option(text: str, num_options: int) -> tuple[int | None, Problem | None]:
    """The option a reply names, and what is wrong with it if anything."""
    if not num_options:
        return None, None if text else "unparseable"
    option = parse_option(text, num_options)
    if option is None:
        return None, "unparseable"
    return (None, "out_of_range") if option == "out_of_range" else (option, None)


def _with_context(answer: Answer, context: Context) -> Answer:
    share = context.num_words / answer.num_document_words if answer.num_document_words else 0.0
    return replace(
        answer,
        page_indexes=context.page_indexes,
        context_spans=context.spans,
        num_lookups=len(context.page_indexes),
        num_context_words=context.num_words,
        compression_rate=100 * (1 - share),
    )


class AnswerFromMemory(AnswerFromContext):
    """From the gist memory, looked-up pages standing raw in their gists' place."""

    kind: Literal["memory"] = "memory"
    reads: ClassVar[tuple[str, ...]] = ("pages", "gists", "lookups")

    def context(self, rows: DocumentRows, used: Sequence[int]) -> Context:
        return memory(rows, used, self.first_page)


class AnswerFromPages(AnswerFromContext):
    """From the looked-up pages alone, in document order."""

    kind: Literal["pages"] = "pages"
    reads: ClassVar[tuple[str, ...]] = ("pages", "lookups")

    def context(self, rows: DocumentRows, used: Sequence[int]) -> Context:
        return raw_pages(rows, used, self.first_page)


class AnswerFromText(AnswerFromContext):
    """From the document's text, or its first or last `num_words` words (section 4.2)."""

    kind: Literal["text"] = "text"
    reads: ClassVar[tuple[str, ...]] = ("lookups",)
    keep: Literal["first", "last"] | None  # null: all of it
    num_words: PositiveInt | None

    def context(self, rows: DocumentRows, used: Sequence[int]) -> Context:
        return raw_text(rows, self.keep, self.num_words)


class AnswerClosedBook(AnswerFromContext):
    """From the question alone: a floor."""

    kind: Literal["nothing"] = "nothing"
    reads: ClassVar[tuple[str, ...]] = ("lookups",)

    def context(self, rows: DocumentRows, used: Sequence[int]) -> Context:
        return Context()


class AnswerConstant(AnswerFromContext):
    """One fixed answer to everything, the first of any options: a floor. No calls."""

    kind: Literal["constant"] = "constant"
    reads: ClassVar[tuple[str, ...]] = ("lookups",)
    prompts: ClassVar[tuple[str, ...]] = ()
    text: str

    def context(self, rows: DocumentRows, used: Sequence[int]) -> Context:
        return Context()

    async def answer(self, empty: Answer, question: Question, context: Context, ask: Ask) -> Answer:
        text = "Answer: (A)" if question.options else self.text
        return replace(
            _with_context(empty, context),
            reader="constant",
            answer=text,
            answer_index=0 if question.options else None,
            num_answer_words=num_words(text),
        )

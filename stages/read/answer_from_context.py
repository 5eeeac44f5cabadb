"""Answer each question from the final context of its method: the base class, and the kinds that
read gist memories or pages."""

import asyncio
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Asked, Prompt
from pipeline.core.rows import Question, QuestionRow, Record, UnitRows
from pipeline.work.stage import CAME_LATER, Column, Columns
from stages.index.context import (
    Budgeted,
    Context,
    ShowsGistMemory,
    fields_of,
    orders_alike,
    raw_pages,
)
from stages.prompts.answer import AnswerQuestion, shown
from stages.retrieve.look_up import by_importance, used_pages, why_upstream
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from stages.tables.pages import Gist, Page
from stages.text.fit_to_limit import fit_to_limit, largest_number
from stages.text.words import num_words

GIVEN = "given"  # the `reader` of answers from a file: nobody knows what their author read
_column = partial(Column, has_interval=False)
LENGTH = _column("length", "length", 100, about="words of the answer")
TOKENS_READ = _column(
    "tokens_read", "tokens read", 81,
    about="tokens of gists and raw text in the final context, by the reader's tokenizer",
)  # fmt: skip
_READ = (
    _column(
        "compression_rate", "CR", 10,
        about="100 x (1 - words of gists and raw text in the final context / words of the "
        "document); ReadAgent's compression rate",
    ),
    _column(
        "lookups", "# LU", 20,
        about="distinct pages whose raw text is in the final context (ReadAgent)",
    ),
    _column(
        "words_read", "words read", 80, about="words of gists and raw text in the final context"
    ),
)  # fmt: skip


class AnswerFromContext(Budgeted):
    """Base class; subclasses build the final context.

    `answer_words`: about how long a free-form answer should be; None: brief. `answer_page_tags`:
    whether passages are shown with page numbers. `budget`: the pages found are read up to the one
    that would pass it. `options_seed`: options are shown in an order drawn from it and the
    question's id. If a row that the question depends on failed, the answer is an `upstream` row; if
    it was skipped, so is the answer.
    """

    name = "answer"
    writes = Answer
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (AnswerQuestion,)
    report_columns: ClassVar[Columns] = {"any": (*_READ, LENGTH)}
    first_page: int = Field(ge=0, le=1)
    answer_words: PositiveInt | None
    answer_page_tags: bool
    options_seed: Annotated[NonNegativeInt | None, CAME_LATER] = None

    @abstractmethod
    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        """The final context for a question whose look-up used the pages `used`."""

    async def run(self, rows: UnitRows, ask: Ask) -> list[Answer]:
        """Questions + the rows of `reads` -> one Answer each, in question order.

        Problems: context_overflow, timeout, refused, engine_failed (no answer); truncated,
        unparseable, out_of_range (the text is kept); upstream.
        """
        return list(await asyncio.gather(*(self._row(rows, q, ask) for q in rows.questions)))

    async def _row(self, rows: UnitRows, question: Question, ask: Ask) -> Answer:
        needed = self.needed(rows, question)
        empty = replace(self.empty(rows, question), reader=ask.engine_name)
        if any(getattr(row, "skipped", False) for row in needed):
            return replace(empty, skipped=True)
        if detail := why_upstream(needed):
            return replace(empty, problem="upstream", detail=detail)
        if self.options_seed is None or not (question.options and self.prompts_used()):
            return await self.answer_with_room(empty, rows, question, ask)
        order = [*range(len(question.options))]
        random.Random(f"{self.options_seed} {question.question_id}").shuffle(order)
        shuffled = replace(question, options=tuple(question.options[index] for index in order))
        answer = await self.answer_with_room(empty, rows, shuffled, ask)
        chosen = None if answer.answer_index is None else order[answer.answer_index]
        return replace(answer, answer_index=chosen, options_order=tuple(order))

    def needed(self, rows: UnitRows, question: Question) -> Sequence[QuestionRow]:
        """The rows that are all needed to answer the question."""
        return rows.made_of(question)

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """Pages beyond the budget or the engine's context are left out, the least important first,
        and counted in `detail`; no page after the first that would pass the budget is tried.
        Problem: context_overflow if the rest does not fit without any page, or if the context would
        be empty without one."""
        used = self.importance(rows, question) if Lookup in self.reads else []

        def context(number: int) -> Context:
            return self.context(rows, question, used[:number])

        async def size(number: int) -> int:
            return await ask.part_tokens(context(number).parts)

        async def prompt_tokens(number: int) -> int:
            return await ask.num_tokens(self.prompt(question, context(number)))

        num_pages, lack = len(used), None
        if self.budget is not None:
            num_pages = await largest_number(self.budget, size, len(used))
            tokens = await size(num_pages)
            if tokens > self.budget:
                lack = f"the context has {tokens} tokens without any page; raise it"
            elif used and not num_pages and not tokens:
                lack = f"the first page has {await size(1)} tokens; raise it or make shorter pages"
            lack = lack and f"budget={self.budget}: {lack}"
        while not lack:
            left_out = len(used) - num_pages
            note = f"no room for {left_out} of {len(used)} pages" if left_out else None
            chosen = context(num_pages)
            if left_out and not chosen.passages:
                lack = f"{note}; make shorter pages"
                break
            answer = await self.answer(replace(empty, detail=note), question, chosen, ask)
            if answer.problem != "context_overflow" or not num_pages:
                return answer
            room = ask.context_tokens - ask.max_reply_tokens(self.prompts_used()[0])
            sizes = await prompt_tokens(0), await prompt_tokens(num_pages)
            num_pages = await fit_to_limit(room, prompt_tokens, range(num_pages + 1), *sizes)
        return replace(empty, problem="context_overflow", detail=lack)

    def importance(self, rows: UnitRows, question: Question) -> list[int]:
        """The looked-up pages, the most important first."""
        return (used_pages if self.budget is None else by_importance)(rows, question)

    def prompt(self, question: Question, context: Context) -> Prompt[int | str]:
        return AnswerQuestion(
            passages=shown(context.passages, self.answer_page_tags),
            **fields_of(question),
            answer_words=self.answer_words,
        )

    async def answer(self, empty: Answer, question: Question, context: Context, ask: Ask) -> Answer:
        subject = Subject(question_id=question.question_id)
        reply = await ask(self.prompt(question, context), subject)
        if not reply.has_reply:
            return replace(empty, problem=reply.problem)
        tokens = await ask.part_tokens(context.parts)
        return self.answered(self.with_context(empty, context, tokens), question, reply)

    def with_context(self, answer: Answer, context: Context, num_tokens: int | None) -> Answer:
        """The answer with facts about its final context, whose parts have `num_tokens` tokens."""
        of_document = answer.num_document_words
        share = context.num_words / of_document if of_document else 0.0
        return replace(
            answer,
            page_indexes=context.page_indexes,
            context_spans=context.spans,
            num_lookups=len(context.page_indexes),
            num_context_words=context.num_words,
            num_context_tokens=num_tokens,
            compression_rate=100 * (1 - share),
        )

    def answered(self, answer: Answer, question: Question, asked: Asked[int | str]) -> Answer:
        is_text = isinstance(asked.value, str) and not question.options
        text = str(asked.value) if is_text else asked.raw.strip()
        is_none = asked.value == "out_of_range" and bool(question.options)
        return replace(
            answer,
            answer=text,
            answer_index=asked.value if isinstance(asked.value, int) else None,
            num_answer_words=num_words(text),
            problem=asked.problem or ("out_of_range" if is_none else None),
        )

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        return Answer.about(about, num_document_words=rows.document.num_words)

    def columns(self) -> Columns:
        more = () if self.budget is None else (TOKENS_READ,)
        return {"any": (*self.report_columns["any"], *more)}


class AnswerFromMemory(ShowsGistMemory, AnswerFromContext):
    """From the gist memory with the looked-up pages, in place of their gists (section 3.2) or
    appended.

    Pages of one look-up are appended in an order that prompts of the unit's other questions share
    from the beginning on (`orders_alike`); pages of several as the look-ups' prompts showed them.
    """

    kind = "memory"
    version = 1
    reads = (Page, Gist, Lookup)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Answer]:
        if self.layout != "appended":
            return await super().run(rows, ask)
        turns = Counter(lookup.question_id for lookup in rows[Lookup])
        chosen = {lookup.question_id: frozenset(lookup.used or ()) for lookup in rows[Lookup]
                  if turns[lookup.question_id] == 1 and lookup.used}  # fmt: skip
        words = {page.page_index: page.num_words for page in rows[Page]}
        orders = orders_alike(chosen.values(), words)
        lookups = [
            replace(row, used=tuple(orders[chosen[row.question_id]]))
            if row.question_id in chosen
            else row
            for row in rows[Lookup]
        ]
        rows = replace(rows, tables={**rows.tables, Lookup: tuple(lookups)})
        return await super().run(rows, ask)

    def importance(self, rows: UnitRows, question: Question) -> list[int]:
        if self.layout == "appended":  # `run` has ordered the pages of look-ups in another way
            return by_importance(rows, question)
        return super().importance(rows, question)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return self.memory(rows, [page for page in used_pages(rows, question) if page in used])


class AnswerFromPages(AnswerFromContext):
    """From the looked-up pages alone, in document order."""

    kind = "pages"
    version = 2
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Lookup)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return raw_pages(rows, used, self.first_page)

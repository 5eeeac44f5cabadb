"""Answer each question without the document: from the question alone, or always the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from stages.index.context import Context
from stages.read.answer_from_context import AnswerFromContext, with_context
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from stages.text.words import num_words


class AnswerClosedBook(AnswerFromContext):
    """From the question alone: a lower baseline."""

    kind: ClassVar[str] = "nothing"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Lookup,)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return Context()


class AnswerConstant(AnswerFromContext):
    """One answer to every question, the first of any options: a lower baseline. No calls."""

    kind: ClassVar[str] = "constant"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Lookup,)
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = ()
    constant_answer: str

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return Context()

    async def answer(self, empty: Answer, question: Question, context: Context, ask: Ask) -> Answer:
        text = "Answer: (A)" if question.options else self.constant_answer
        return replace(
            with_context(empty, context),
            reader="constant",
            answer=text,
            answer_index=0 if question.options else None,
            num_answer_words=num_words(text),
        )

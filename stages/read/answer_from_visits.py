"""The answer that the reply at a leaf contains (MemWalker section 3)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from stages.index.context import Context, raw_pages
from stages.read.answer_from_context import AnswerFromContext, with_context
from stages.retrieve.look_up import used_pages
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from stages.tables.pages import Page
from stages.tables.visits import Visit
from stages.text.words import num_words


class AnswerFromVisits(AnswerFromContext):
    """The answer given at the last node visited; its segment and the working memory shown with it
    are the final context. No calls."""

    kind: ClassVar[str] = "visits"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Visit, Lookup)
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = ()

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
            with_context(empty, context),
            answer=last.answer,
            answer_index=last.answer_index,
            num_answer_words=num_words(last.answer),
            problem=last.problem,
        )

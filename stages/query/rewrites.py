"""Queries made from the question alone: HyDE and RQ-RAG, which MemoRAG compares itself with."""

import asyncio
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, UnitRows
from stages.prompts.memorag.hypothetical import Hypothetical
from stages.prompts.memorag.sub_questions import SubQuestions
from stages.query.make_queries import FilterQueries, Kind, MakeQueries, queries_of, query
from stages.tables.queries import Query


class MakeHypothetical(MakeQueries):
    """HyDE (arXiv 2212.10496): a passage that might answer the question is searched for in its
    place. One passage; the paper averages the vectors of several and the question's.
    """

    kind: ClassVar[str] = "hypothetical"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (Hypothetical,)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries: the passage; where it cannot be read the question, too."""
        made: list[Query] = []
        for own, found in await _rewritten(rows, Hypothetical, "hypothetical", ask):
            is_read = found[0].text is not None
            made += self.numbered(found if is_read else [*found, own])
        return made


class MakeSubQuestions(FilterQueries):
    """RQ-RAG (arXiv 2404.00610) by a prompt, without the paper's trained model: the question is
    refined, decomposed or disambiguated; itself, too, is searched for.
    """

    kind: ClassVar[str] = "sub_questions"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (SubQuestions,)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries: the question, and what it was rewritten to."""
        rewritten = await _rewritten(rows, SubQuestions, "sub_question", ask)
        return [row for own, found in rewritten for row in self.numbered([own, *found])]


async def _rewritten(
    rows: UnitRows, prompt: type[Hypothetical | SubQuestions], kind: Kind, ask: Ask
) -> list[tuple[Query, list[Query]]]:
    """Each question as a query, and those that the reply to the prompt holds."""

    async def one(question: Question) -> tuple[Query, list[Query]]:
        filled: Prompt[Any] = prompt(
            question=question.question, options=question.options, asked_at=question.asked_at or ""
        )
        asked = await ask(filled, Subject(question_id=question.question_id))
        own = query(question, "question", question.question)
        return own, queries_of(question, kind, asked, None)

    return list(await asyncio.gather(*map(one, rows.questions)))

"""Queries made from the question alone: HyDE and RQ-RAG, which MemoRAG compares itself with."""

import asyncio
from abc import abstractmethod
from typing import Any, ClassVar

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.prompts import Prompt
from pipeline.rows import Question, UnitRows
from stages.prompts.hypothetical import Hypothetical
from stages.prompts.sub_questions import SubQuestions
from stages.query.queries import MakeQueries, Query, queries_of, query


class _FromQuestion(MakeQueries):
    """Base class of those that the model makes without any text."""

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries, in question order."""
        made = await asyncio.gather(*(self.found(q, ask) for q in rows.questions))
        return [row for found in made for row in self.numbered(found)]

    @abstractmethod
    async def found(self, question: Question, ask: Ask) -> list[Query]:
        """The queries for one question, the most important first."""


class MakeHypothetical(_FromQuestion):
    """HyDE (arXiv 2212.10496): a passage that might answer the question is searched for in its
    place. One passage; the paper averages the vectors of several and the question's.
    """

    kind: ClassVar[str] = "hypothetical"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (Hypothetical,)

    async def found(self, question: Question, ask: Ask) -> list[Query]:
        """The question itself where the reply cannot be read."""
        prompt = Hypothetical(
            question=question.question, options=question.options, asked_at=question.asked_at or ""
        )
        asked = await ask(prompt, Subject(question_id=question.question_id))
        made = queries_of(question, "hypothetical", asked, None)
        is_read = asked.value is not None
        return made if is_read else [*made, query(question, "question", question.question)]


class MakeSubQuestions(_FromQuestion):
    """RQ-RAG (arXiv 2404.00610) by a prompt, without the paper's trained model: the question is
    refined, decomposed or disambiguated; itself, too, is searched for.
    """

    kind: ClassVar[str] = "sub_questions"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (SubQuestions,)

    async def found(self, question: Question, ask: Ask) -> list[Query]:
        prompt = SubQuestions(
            question=question.question, options=question.options, asked_at=question.asked_at or ""
        )
        asked = await ask(prompt, Subject(question_id=question.question_id))
        made = queries_of(question, "sub_question", asked, None)
        return [query(question, "question", question.question), *made]

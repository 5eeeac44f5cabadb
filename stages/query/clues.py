"""Clues from a memory of the whole document, as queries (MemoRAG sections 2.1 and 2.3)."""

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Literal

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Role
from stages.index.memorize import CLUES, memory_parts
from stages.prompts.memorag.clue_questions import ClueQuestions
from stages.prompts.memorag.clue_spans import ClueSpans
from stages.prompts.memorag.draft_answer import DraftAnswer
from stages.prompts.memorag.from_memory import FromMemory
from stages.prompts.memorag.key_points import KeyPoints
from stages.prompts.parsing.passages import Passage
from stages.query.make_queries import FilterQueries, Kind, is_searched, queries_of, query
from stages.tables.memory_passages import MemoryPassage
from stages.tables.queries import Query


class MakeClues(FilterQueries):
    """`task` answer: the question itself, with `draft` a draft of its answer, spans of text and
    surrogate questions. `task` summary: the key points of the text; the question, an instruction,
    is a query only where none is searched for. Each part of the memory is asked by itself.
    """

    kind: ClassVar[str] = "clues"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (MemoryPassage,)
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = CLUES
    role: ClassVar[Role] = "memory"
    task: Literal["answer", "summary"]
    draft: bool

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return tuple(prompt for _, prompt in self._prompts())

    def _prompts(self) -> list[tuple[Kind, type[FromMemory[Any]]]]:
        if self.task == "summary":
            return [("point", KeyPoints)]
        drafts: list[tuple[Kind, type[FromMemory[Any]]]] = [("draft", DraftAnswer)]
        clues: list[tuple[Kind, type[FromMemory[Any]]]] = [
            ("span", ClueSpans),
            ("surrogate", ClueQuestions),
        ]
        return [*(drafts if self.draft else []), *clues]

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions, and the memory -> their Queries, in question order. One part of the memory
        after the other is asked for all questions: a prefix cache needs room for one."""
        of_parts = [
            await asyncio.gather(*(self._from_part(q, part, passages, ask) for q in rows.questions))
            for part, passages in enumerate(memory_parts(rows))
        ]
        made: list[Query] = []
        for question, *parts in zip(rows.questions, *of_parts, strict=True):
            made += self._of_question(question, self._ordered(parts))
        return made

    def _of_question(self, question: Question, clues: Sequence[Query]) -> list[Query]:
        own = query(question, "question", question.question)
        found = self.numbered([own, *clues] if self.task == "answer" else clues)
        return found if any(map(is_searched, found)) else self.numbered([*clues, own])

    def _ordered(self, parts: Sequence[Sequence[Sequence[Query]]]) -> list[Query]:
        """The lines of all replies, kind by kind: first the first lines of all parts, which there
        may be no room for otherwise."""
        found: list[Query] = []
        for replies in zip(*parts, strict=True):
            lines = zip_longest(*replies)
            found += [row for line in lines for row in line if row is not None]
        return found

    async def _from_part(
        self, question: Question, part: int, passages: tuple[Passage, ...], ask: Ask
    ) -> list[list[Query]]:
        """The clues that a part of the memory gives for a question, kind by kind."""
        subject = Subject(question_id=question.question_id, turn=part)
        kinds, prompts = zip(*self._prompts(), strict=True)
        asked = await asyncio.gather(
            *(
                ask(
                    prompt(
                        passages=passages,
                        question=question.question,
                        options=question.options,
                        asked_at=question.asked_at or "",
                    ),
                    subject,
                )
                for prompt in prompts
            )
        )
        found = zip(kinds, asked, strict=True)
        return [queries_of(question, kind, reply, part) for kind, reply in found]

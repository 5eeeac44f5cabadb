"""Clues from a memory of the whole document, as queries (MemoRAG sections 2.1 and 2.3)."""

import asyncio
from typing import Any, ClassVar, Literal

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.prompts import Prompt
from pipeline.rows import Question, Record, UnitRows
from pipeline.stage import Role
from stages.index.memorize import CLUES, MemoryPassage, memory_parts
from stages.prompts.clue_questions import ClueQuestions
from stages.prompts.clue_spans import ClueSpans
from stages.prompts.draft_answer import DraftAnswer
from stages.prompts.from_memory import FromMemory
from stages.prompts.key_points import KeyPoints
from stages.prompts.passages import Passage
from stages.query.queries import Kind, MakeQueries, Query, queries_of, query


class MakeClues(MakeQueries):
    """`task` answer: the question itself, with `draft` a draft of its answer, spans of text and
    surrogate questions. `task` summary: the key points of the text; the question, an instruction,
    is a query only where there are none. Each part of the memory is asked by itself.
    """

    kind: ClassVar[str] = "clues"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (MemoryPassage,)
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = CLUES
    role: ClassVar[Role] = "memory"
    task: Literal["answer", "summary"]
    draft: bool

    def asked(self) -> tuple[type[Prompt[Any]], ...]:
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

    async def found(self, rows: UnitRows, question: Question, ask: Ask) -> list[Query]:
        parts = list(enumerate(memory_parts(rows)))
        asked = await asyncio.gather(
            *(
                self._from_part(question, kind, prompt, index, passages, ask)
                for kind, prompt in self._prompts()
                for index, passages in parts
            )
        )
        clues = [row for found in asked for row in found]
        is_needed = self.task == "answer" or not any(row.text for row in clues)
        return [*([query(question, "question", question.question)] if is_needed else []), *clues]

    async def _from_part(
        self,
        question: Question,
        kind: Kind,
        prompt: type[FromMemory[Any]],
        part: int,
        passages: tuple[Passage, ...],
        ask: Ask,
    ) -> list[Query]:
        filled = prompt(
            passages=passages,
            question=question.question,
            options=question.options,
            asked_at=question.asked_at or "",
        )
        asked = await ask(filled, Subject(question_id=question.question_id, turn=part))
        return queries_of(question, kind, asked, part)

"""Clues from a memory of the whole document, as queries (MemoRAG sections 2.1 and 2.3)."""

import asyncio
from collections.abc import Sequence
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

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions, and the memory -> their Queries, in question order. One part of the memory
        after the other is asked for all questions: a prefix cache needs room for one."""
        of_parts = [
            await asyncio.gather(*(self._from_part(q, part, passages, ask) for q in rows.questions))
            for part, passages in enumerate(memory_parts(rows))
        ]
        made: list[Query] = []
        for question, *parts in zip(rows.questions, *of_parts, strict=True):
            made += self.numbered(self._ordered(question, [row for part in parts for row in part]))
        return made

    def _ordered(self, question: Question, clues: Sequence[Query]) -> list[Query]:
        kinds: list[str] = [kind for kind, _ in self._prompts()]
        is_asked = self.task == "answer" or not any(row.text for row in clues)
        asked = [query(question, "question", question.question)] if is_asked else []
        return [*asked, *sorted(clues, key=lambda row: kinds.index(row.kind))]

    async def _from_part(
        self, question: Question, part: int, passages: tuple[Passage, ...], ask: Ask
    ) -> list[Query]:
        """The clues that a part of the memory gives for a question."""
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
        return [row for kind, reply in found for row in queries_of(question, kind, reply, part)]

"""Queries, texts searched for on behalf of a question. A model writes them as clues from a memory
of the whole document (MemoRAG sections 2.1 and 2.3), or from the question alone: HyDE and RQ-RAG,
MemoRAG's baselines, and the question's time range (LongMemEval section 5.4)."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Asked, Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Column, Columns, Role, Stage
from stages.index.memorize import CLUES, memory_parts
from stages.prompts.answer import Passage
from stages.prompts.longmemeval import NO_RANGE, TimeRange
from stages.prompts.memorag import (
    ClueQuestions,
    ClueSpans,
    DraftAnswer,
    FromMemory,
    Hypothetical,
    KeyPoints,
    SubQuestions,
)
from stages.tables.keys import MemoryPassage
from stages.tables.lookups import Query
from stages.text.chat_text import day_of
from stages.text.words import num_words, plain

Kind = Literal[
    "question", "span", "surrogate", "draft", "point", "hypothetical", "sub_question", "time_range"
]
_QUERIES = Column(
    "queries", "queries", 15, has_interval=False,
    about="texts that pages are searched by, of a question",
)  # fmt: skip


class MakeQueries(Stage):
    """Base class: writes a row per query, numbered from 0.

    Problems of rows: unparseable, truncated (there is no such query); context_overflow, timeout,
    refused, engine_failed.
    """

    name = "queries"
    writes = Query
    report_columns: ClassVar[Columns] = {"any": (_QUERIES,)}

    def numbered(self, found: Sequence[Query]) -> list[Query]:
        return [replace(row, query_index=index) for index, row in enumerate(found)]

    def empty(self, rows: UnitRows, about: Record) -> Query:
        return Query.about(about, kind="question")


class FilterQueries(MakeQueries):
    """Base class: searches only for lines of `min_query_words` words or more, each once, and at
    most `max_queries` of a reply.

    In scripts without spaces characters count as words. A draft may be shorter, as in the authors'
    code.
    """

    min_query_words: PositiveInt
    max_queries: PositiveInt

    def numbered(self, found: Sequence[Query]) -> list[Query]:
        """The queries with their numbers, and the reasons why some are not searched for."""
        made: list[Query] = []
        seen: set[str] = set()
        of_replies: Counter[tuple[str, int | None]] = Counter()
        for row in found:
            row = replace(row, dropped=self._refusal(row, seen, of_replies))
            if row.dropped is None and row.text is not None:
                seen.add(plain(row.text))
                of_replies[row.kind, row.part_index] += 1
            made.append(row)
        return super().numbered(made)

    def _refusal(
        self, row: Query, seen: set[str], of_replies: Counter[tuple[str, int | None]]
    ) -> str | None:
        if row.text is None or row.kind == "question":
            return None
        if row.kind != "draft" and num_words(row.text) < self.min_query_words:
            return "short"
        if plain(row.text) in seen:
            return "duplicate"
        num = of_replies[row.kind, row.part_index]
        return "over_maximum" if num >= self.max_queries else None


def query(question: Question, kind: Kind, text: str | None) -> Query:
    """A query without a number."""
    return Query.about(question, kind=kind, text=text)


def queries_of(
    question: Question, kind: Kind, asked: Asked[str] | Asked[tuple[str, ...]], part: int | None
) -> list[Query]:
    """The queries in a reply, one a line; a single one without a text if it cannot be read."""
    row = replace(query(question, kind, None), part_index=part)
    if asked.value is None:
        return [replace(row, problem=asked.problem)]
    texts = [asked.value] if isinstance(asked.value, str) else asked.value
    return [replace(row, text=text) for text in texts]


def searched(rows: UnitRows, question: Question) -> list[Query]:
    return [row for row in rows.of(Query, question) if is_searched(row)]


def is_searched(row: Query) -> bool:
    return row.text is not None and row.dropped is None and row.kind != "time_range"


T = TypeVar("T", Hypothetical, SubQuestions)


class MakeClues(FilterQueries):
    """`task` answer: the question itself, with `draft` a draft of its answer, spans of text and
    surrogate questions. `task` summary: the key points of the text; the question, an instruction,
    is a query only where none is searched for. Each part of the memory is asked by itself.
    """

    kind = "clues"
    version = 2
    reads = (MemoryPassage,)
    prompts = CLUES
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
        """Questions and the memory -> their Queries, in question order. All questions are asked
        about one part of the memory before the next, so that a prefix cache needs room for one
        part."""
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
        """The lines of all replies by kind: the first lines of all parts, then the second ones, as
        only the first may have room."""
        found: list[Query] = []
        for replies in zip(*parts, strict=True):
            lines = zip_longest(*replies)
            found += [row for line in lines for row in line if row is not None]
        return found

    async def _from_part(
        self, question: Question, part: int, passages: tuple[Passage, ...], ask: Ask
    ) -> list[list[Query]]:
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


class MakeHypothetical(MakeQueries):
    """HyDE (arXiv 2212.10496, section 3): `num_passages` passages that might answer the question
    are searched for, the paper's 8 and itself (`with_question`) together, by their mean vector
    (`mean` of the stage search). Each is drawn anew: an engine without sampling is asked once.
    """

    kind = "hypothetical"
    version = 2
    prompts = (Hypothetical,)
    num_passages: PositiveInt
    with_question: bool

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries: the passages, and the question if `with_question` is set or
        no passage can be read."""
        made = await asyncio.gather(*(self._of_question(q, ask) for q in rows.questions))
        return [row for found in made for row in self.numbered(found)]

    async def _of_question(self, question: Question, ask: Ask) -> list[Query]:
        prompt = _filled(Hypothetical, question)
        of = question.question_id
        first = await ask(prompt, Subject(question_id=of))
        more = (
            ask(prompt, Subject(question_id=of, attempt=number))
            for number in range(2, self.num_passages + 1)
        )
        replies = [first, *await asyncio.gather(*more)]
        found = [
            row for reply in replies for row in queries_of(question, "hypothetical", reply, None)
        ]
        own = query(question, "question", question.question)
        is_read = any(row.text is not None for row in found)
        return found if is_read and not self.with_question else [*found, own]


class MakeSubQuestions(FilterQueries):
    """RQ-RAG (arXiv 2404.00610) by a prompt, without the paper's trained model: the question is
    refined, decomposed or disambiguated; itself, too, is searched for.
    """

    kind = "sub_questions"
    version = 1
    prompts = (SubQuestions,)

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries: the question, and its rewritten forms."""
        made = await asyncio.gather(*(self._of_question(q, ask) for q in rows.questions))
        return [row for found in made for row in self.numbered(found)]

    async def _of_question(self, question: Question, ask: Ask) -> list[Query]:
        prompt = _filled(SubQuestions, question)
        asked = await ask(prompt, Subject(question_id=question.question_id))
        own = query(question, "question", question.question)
        return [own, *queries_of(question, "sub_question", asked, None)]


def _filled(prompt: type[T], question: Question) -> T:
    return prompt(
        question=question.question, options=question.options, asked_at=question.asked_at or ""
    )


class MakeTimeRange(MakeQueries):
    """The question itself, and with `time_aware` the range of days that it asks about, if any. A
    range that starts on the day of the question is none, as in the authors' code: nothing that was
    said before would be within it.
    """

    kind = "time_range"
    version = 2
    prompts = (TimeRange,)
    role: ClassVar[Role] = "query_expander"
    time_aware: bool
    extraction_examples: bool  # whether the prompt has ten (appendix D)

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return self.prompts if self.time_aware else ()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries. If no range is stated, or it cannot be read (problem
        unparseable, truncated), both dates are None and nothing is out of range."""
        made = await asyncio.gather(*(self._found(q, ask) for q in rows.questions))
        return [row for found in made for row in self.numbered(found)]

    async def _found(self, question: Question, ask: Ask) -> list[Query]:
        own = query(question, "question", question.question)
        if not self.time_aware:
            return [own]
        prompt = TimeRange(question.question, question.asked_at or "", self.extraction_examples)
        asked = await ask(prompt, Subject(question_id=question.question_id))
        start, end = asked.value or NO_RANGE
        if start and start == day_of(question.asked_at or ""):
            start, end = NO_RANGE
        ends = [f"from {start}" if start else "", f"until {end}" if end else ""]
        row = query(question, "time_range", " ".join(filter(None, ends)) or None)
        row = replace(row, start_date=start or None, end_date=end or None)
        return [own, replace(row, problem=asked.problem)]

"""Queries, texts searched for on behalf of a question. A model writes them as clues from a memory
of the whole document (MemoRAG sections 2.1 and 2.3), or from the question alone: HyDE and RQ-RAG,
MemoRAG's baselines, and the question's time range (LongMemEval section 5.4)."""

import asyncio
from abc import ABC
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Asked, Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Column, Columns, Role, Stage
from stages.index.context import fields_of
from stages.index.memorize import CLUES, memory_parts
from stages.prompts import memorag
from stages.prompts.answer import Passage
from stages.prompts.longmemeval import NO_RANGE, TimeRange
from stages.tables.lookups import Query
from stages.tables.pages import MemoryPassage
from stages.text.chat_text import day_of
from stages.text.words import num_words, plain

Kind = Literal[
    "question", "span", "surrogate", "draft", "point", "hypothetical", "sub_question", "time_range"
]
_QUERIES = Column(
    "queries", "queries", 15, has_interval=False,
    about="texts that pages are searched by, of a question",
)  # fmt: skip


class MakeQueries(Stage, ABC):
    """Base class: writes a row per query, numbered from 0. Problems: unparseable, truncated (there
    is no such query); context_overflow, timeout, refused, engine_failed."""

    name = "queries"
    writes = Query
    report_columns: ClassVar[Columns] = {"any": (_QUERIES,)}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        of_questions = await asyncio.gather(*(self.of_question(q, ask) for q in rows.questions))
        return [row for queries in of_questions for row in self.numbered(queries)]

    async def of_question(self, question: Question, ask: Ask) -> list[Query]:
        """The queries of a question, without their numbers; by default itself."""
        return [_itself(question)]

    def numbered(self, queries: Sequence[Query]) -> list[Query]:
        return [replace(row, query_index=index) for index, row in enumerate(queries)]

    def empty(self, rows: UnitRows, about: Record) -> Query:
        return Query.about(about, kind="question")


class FilterQueries(MakeQueries, ABC):
    """Base class: searches only for lines of `min_query_words` words or more, each once, and at
    most `max_queries` of a reply. A draft may be shorter, as in the authors' code."""

    min_query_words: PositiveInt
    max_queries: PositiveInt

    def numbered(self, queries: Sequence[Query]) -> list[Query]:
        numbered: list[Query] = []
        seen: set[str] = set()
        of_replies: Counter[tuple[str, int | None]] = Counter()
        for row in super().numbered(queries):
            reply = row.kind, row.part_index
            dropped = None
            if row.text is not None and row.kind != "question":
                if row.kind != "draft" and num_words(row.text) < self.min_query_words:
                    dropped = "short"
                elif plain(row.text) in seen:
                    dropped = "duplicate"
                elif of_replies[reply] >= self.max_queries:
                    dropped = "over_maximum"
            if dropped is None and row.text is not None:
                seen.add(plain(row.text))
                of_replies[reply] += 1
            numbered.append(replace(row, dropped=dropped))
        return numbered


def _itself(question: Question) -> Query:
    return Query.about(question, kind="question", text=question.question)


def _queries_of(
    question: Question, kind: Kind, reply: Asked[Any], part: int | None = None
) -> list[Query]:
    """The queries in a reply, one a line; if it cannot be read, one without a text."""
    row = Query.about(question, kind=kind, part_index=part)
    if reply.value is None:
        return [replace(row, problem=reply.problem)]
    texts = [reply.value] if isinstance(reply.value, str) else reply.value
    return [replace(row, text=text) for text in texts]


def searched(rows: UnitRows, question: Question) -> list[Query]:
    return [row for row in rows.of(Query, question) if _is_searched(row)]


def _is_searched(row: Query) -> bool:
    return row.text is not None and row.dropped is None and row.kind != "time_range"


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
        return tuple(self._prompts().values())

    def _prompts(self) -> Mapping[Kind, type[memorag.FromMemory[Any]]]:
        if self.task == "summary":
            return {"point": memorag.KeyPoints}
        clues: dict[Kind, type[memorag.FromMemory[Any]]] = {}
        if self.draft:
            clues["draft"] = memorag.DraftAnswer
        return {**clues, "span": memorag.ClueSpans, "surrogate": memorag.ClueQuestions}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions and the memory -> their Queries, in question order. All questions are asked
        about one part of the memory before the next: a prefix cache needs room for one part."""
        of_parts = [
            await asyncio.gather(*(self._from_part(q, part, passages, ask) for q in rows.questions))
            for part, passages in enumerate(memory_parts(rows))
        ]
        queries: list[Query] = []
        for question, *parts in zip(rows.questions, *of_parts, strict=True):
            # The first lines of all parts, then the second ones: only the first may have room.
            ranks = [rank for replies in zip(*parts, strict=True) for rank in zip_longest(*replies)]
            clues = [row for rank in ranks for row in rank if row is not None]
            itself = _itself(question)
            rows_of = self.numbered([itself, *clues] if self.task == "answer" else clues)
            if not any(map(_is_searched, rows_of)):
                rows_of = self.numbered([*clues, itself])
            queries += rows_of
        return queries

    async def _from_part(
        self, question: Question, part: int, passages: tuple[Passage, ...], ask: Ask
    ) -> list[list[Query]]:
        async def lines(kind: Kind, prompt: type[memorag.FromMemory[Any]]) -> list[Query]:
            shown = prompt(passages=passages, **fields_of(question))
            subject = Subject(question_id=question.question_id, turn=part)
            return _queries_of(question, kind, await ask(shown, subject), part)

        return await asyncio.gather(*(lines(*each) for each in self._prompts().items()))


class MakeHypothetical(MakeQueries):
    """HyDE (arXiv 2212.10496, section 3): `num_passages` passages that might answer the question
    are searched for, the paper's 8 and itself (`with_question`) together, by their mean vector
    (`mean` of the stage search). Each is drawn anew: an engine without sampling is asked once.
    """

    kind = "hypothetical"
    version = 2
    prompts = (memorag.Hypothetical,)
    num_passages: PositiveInt
    with_question: bool

    async def of_question(self, question: Question, ask: Ask) -> list[Query]:
        prompt = memorag.Hypothetical(**fields_of(question))
        replies = [await ask(prompt, Subject(question_id=question.question_id))]
        attempts = range(2, self.num_passages + 1)
        more = (Subject(question_id=question.question_id, attempt=number) for number in attempts)
        replies += await asyncio.gather(*(ask(prompt, subject) for subject in more))
        queries = [row for r in replies for row in _queries_of(question, "hypothetical", r)]
        is_read = any(row.text is not None for row in queries)
        return queries if is_read and not self.with_question else [*queries, _itself(question)]


class MakeSubQuestions(FilterQueries):
    """RQ-RAG (arXiv 2404.00610) by a prompt, without the paper's trained model: the question is
    refined, decomposed or disambiguated; itself, too, is searched for.
    """

    kind = "sub_questions"
    version = 1
    prompts = (memorag.SubQuestions,)

    async def of_question(self, question: Question, ask: Ask) -> list[Query]:
        prompt = memorag.SubQuestions(**fields_of(question))
        reply = await ask(prompt, Subject(question_id=question.question_id))
        return [_itself(question), *_queries_of(question, "sub_question", reply)]


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

    async def of_question(self, question: Question, ask: Ask) -> list[Query]:
        """Where the reply has no range, or none that can be read, both dates are None."""
        if not self.time_aware:
            return [_itself(question)]
        prompt = TimeRange(question.question, question.asked_at or "", self.extraction_examples)
        reply = await ask(prompt, Subject(question_id=question.question_id))
        start, end = reply.value or NO_RANGE
        if start and start == day_of(question.asked_at or ""):
            start, end = NO_RANGE
        ends = [f"from {start}" if start else "", f"until {end}" if end else ""]
        time_range = Query.about(
            question,
            kind="time_range",
            text=" ".join(filter(None, ends)) or None,
            start_date=start or None,
            end_date=end or None,
            problem=reply.problem,
        )
        return [_itself(question), time_range]

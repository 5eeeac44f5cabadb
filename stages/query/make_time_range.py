"""The time that a question is about (LongMemEval section 5.4)."""

import asyncio
from dataclasses import replace
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, UnitRows
from pipeline.work.stage import Role
from stages.prompts.longmemeval.time_range import NO_RANGE, TimeRange
from stages.query.make_queries import MakeQueries, query
from stages.tables.queries import Query
from stages.text.dates import day_of


class MakeTimeRange(MakeQueries):
    """The question itself, and with `time_aware` the range of days that it asks about, if any. A
    start on the day of the question is no start, as in the authors' code: nothing that was said
    before would be in range.
    """

    kind: ClassVar[str] = "time_range"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (TimeRange,)
    role: ClassVar[Role] = "extractor"
    time_aware: bool

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return self.prompts if self.time_aware else ()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Query]:
        """Questions -> their Queries. Of a range that is not said, or cannot be read (problem
        unparseable, truncated), both dates are None: nothing is then out of range."""
        made = await asyncio.gather(*(self._found(q, ask) for q in rows.questions))
        return [row for found in made for row in self.numbered(found)]

    async def _found(self, question: Question, ask: Ask) -> list[Query]:
        own = query(question, "question", question.question)
        if not self.time_aware:
            return [own]
        prompt = TimeRange(question=question.question, asked_at=question.asked_at or "")
        asked = await ask(prompt, Subject(question_id=question.question_id))
        start, end = asked.value or NO_RANGE
        start = "" if start == day_of(question.asked_at or "") else start
        row = query(question, "time_range", _said(start, end))
        row = replace(row, start_date=start or None, end_date=end or None)
        return [own, replace(row, problem=asked.problem)]


def _said(start: str, end: str) -> str | None:
    ends = [f"from {start}" if start else "", f"until {end}" if end else ""]
    return " ".join(filter(None, ends)) or None

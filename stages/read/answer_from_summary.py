"""Answer each question from the summary that was carried through the document."""

from collections.abc import Sequence
from typing import ClassVar

from pipeline.core.rows import Question, QuestionRow, Record, UnitRows
from stages.index.context import Context
from stages.prompts.parsing.passages import Passage
from stages.read.answer_from_context import AnswerFromContext
from stages.tables.running_summaries import RunningSummary


class AnswerFromRunningSummary(AnswerFromContext):
    """From the summary after the last segment (MemWalker section 4, recurrence). Where no segment
    gave a summary, the answer is an `upstream` row."""

    kind: ClassVar[str] = "running_summary"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (RunningSummary,)

    def needed(self, rows: UnitRows, question: Question) -> Sequence[QuestionRow]:
        return rows.of(RunningSummary, question)[-1:]

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        (last,) = self.needed(rows, question)
        assert isinstance(last, RunningSummary)
        return Context(
            passages=(Passage("gist", None, last.summary or ""),), num_words=last.num_words
        )

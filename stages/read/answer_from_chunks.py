"""Answer each question from the chunks that its queries found (MemoRAG section 2.1)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pipeline.core.rows import Question, Record, UnitRows
from stages.index.context import Context, raw_pages
from stages.prompts.parsing.passages import Passage
from stages.query.make_queries import searched
from stages.read.answer_from_context import AnswerFromContext
from stages.tables.lookups import Lookup
from stages.tables.pages import Page
from stages.tables.queries import Query
from stages.text.words import num_words


class AnswerFromChunks(AnswerFromContext):
    """From the pages that were found, in document order. A draft of the answer, where one was
    searched for, stands after them, as the authors' code has it; its words count as read."""

    kind: ClassVar[str] = "chunks"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Page, Query, Lookup)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        found = raw_pages(rows, used, self.first_page)
        drafts = [q.text or "" for q in searched(rows, question) if q.kind == "draft"]
        notes = tuple(Passage("text", None, f"(A guess, made from memory: {d})") for d in drafts)
        return replace(
            found,
            passages=(*found.passages, *notes),
            num_words=found.num_words + sum(map(num_words, drafts)),
        )

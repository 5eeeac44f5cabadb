"""What a stage is: an async function from the rows of one unit to new rows of one table."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, Literal

from pipeline.ask import Ask
from pipeline.errors import AccountingError, Problem
from pipeline.records import Answer, Document, Embedding, Gist, Lookup, Page, Question, Record
from pipeline.settings import Settings

Phase = Literal["reading", "rating", "scoring"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRows:
    """The rows of one document that a unit reads; tables its stage does not read are empty."""

    document: Document
    questions: tuple[Question, ...] = ()
    pages: tuple[Page, ...] = ()
    gists: tuple[Gist, ...] = ()
    embeddings: tuple[Embedding, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    answers: tuple[Answer, ...] = ()

    def without_gold(self) -> "DocumentRows":
        """The same, the questions' references, right options and evidence left out."""
        return replace(self, questions=tuple(_without_gold(q) for q in self.questions))

    def lack(self) -> str | None:
        """What every question would need and the document or its memory has not, if anything.

        Where there are answers already, they say so one by one.
        """
        if self.answers:
            return None
        if self.document.problem is not None:
            return self.document.detail or f"document: {self.document.problem}"
        if self.document.skipped:
            return "document: skipped"
        if any(page.text is None for page in self.pages):
            return f"paginate: {self.pages[0].problem}"
        for gist in self.gists:
            if gist.gist is None:
                return f"gist of page {gist.page_index}: {gist.problem}"
        for row in self.embeddings:
            if row.problem not in (None, "empty_input"):  # a page without words is never found
                return f"index of page {row.page_index}: {row.problem}"
        return None


class Stage(Settings):
    """Settings are its fields; all of them are hashed into the step's name.

    `run` gets the rows named in `reads` (the document always, the questions where `writes` has
    a question_id) and returns the unit's rows of `writes`, in the order of their key.
    """

    name: ClassVar[str]
    version: ClassVar[int]  # raise when the rows it makes change meaning
    phase: ClassVar[Phase] = "reading"
    reads: ClassVar[tuple[str, ...]]  # pages, gists, embeddings, lookups, answers
    writes: ClassVar[type[Record]]
    prompts: ClassVar[tuple[str, ...]] = ()
    reads_gold: ClassVar[bool] = False  # may it see references, right options and evidence?

    @abstractmethod
    async def run(self, rows: DocumentRows, ask: Ask) -> Sequence[Record]:
        """The unit's new rows. Whatever a model does wrong is a row with a problem."""

    @abstractmethod
    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> Sequence[Record]:
        """A row with `problem` for each input of the unit, in place of what `run` would return."""

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless `made` is what these rows must lead to."""

    @classmethod
    def per_question(cls) -> bool:
        """Whether a unit is a chunk of a document's questions rather than the document."""
        return "question_id" in cls.writes.__dataclass_fields__


def refuse_gaps(rows: DocumentRows, made: Sequence[Record], number: str) -> None:
    """Raise AccountingError unless each question's rows stand together, in question order, and
    their `number` column counts up from 0."""
    groups = groupby(((getattr(row, "question_id", ""), getattr(row, number)) for row in made),
                     key=lambda pair: pair[0])  # fmt: skip
    numbered = [(question_id, [pair[1] for pair in pairs]) for question_id, pairs in groups]
    whole = all(numbers == list(range(len(numbers))) for _, numbers in numbered)
    if not whole or [q for q, _ in numbered] != [q.question_id for q in rows.questions]:
        raise AccountingError(f"{rows.document.document_id}: {number} does not add up")


def _without_gold(question: Question) -> Question:
    return replace(question, references=(), answer_index=None, evidence=())

"""Corrections of questions and references, read beside a corpus and applied to it as it is loaded.

A format of them is a subclass of `Corrections`, found by a key that its rows have. The one here is
for corrections of one's own (JSON lines, a JSON list, CSV or Parquet, or a folder of .jsonl): rows
of question_id with question, references (a list or one string) or both. `replaces` says what is
corrected, and is compared: the question's text (a string) or its references (a list).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry
from pipeline.core.rows import Question
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, bad_document, bad_question
from stages.corpora.reading.question_file import of_cells
from stages.corpora.reading.row_checks import (
    BadInputError,
    json_text,
    one_or_more,
    question_of,
    shown,
    texts_of,
)

_SETTING = "corpus.corrections"
FORMATS: "Registry[type[Corrections]]" = Registry("reads corrections with the key {!r}")


class Corrections(ABC):
    """The rows of a file of corrections, all in memory, each used for one question or document."""

    key: ClassVar[str]  # a row that has it is of this format
    about: ClassVar[str]  # the key of the id that a row is about, document_id or question_id
    papers: ClassVar[tuple[str, ...]] = ()  # keys in papers.bib

    @classmethod
    def __init_subclass__(cls) -> None:
        FORMATS.add(cls.key, cls)

    def __init__(self, rows: Iterable[Row]) -> None:
        ids = Ids()
        self.rows: dict[str, Row] = {}  # by the id; those that were used are removed
        self._bad: list[tuple[Row, str]] = []
        for row in rows:
            about, wrong = ids.of_given(row, self.about)
            if wrong is None:
                self.rows[about] = row
            else:
                self._bad.append((row, wrong))

    @classmethod
    def of_split(cls, rows: Iterable[Row], split: str | None) -> "Corrections":
        """The corrections of the corpus's split, where rows say theirs. Raises UsageError where
        none is of it."""
        return cls(rows)

    def is_about(self, loaded: Loaded) -> bool:
        """True if a correction names the document, or one of its questions."""
        rows = [loaded.document] if self.about == "document_id" else loaded.questions
        return any(getattr(row, self.about) in self.rows for row in rows)

    @abstractmethod
    def corrected(self, loaded: Loaded) -> Loaded:
        """The document with its questions corrected, and a question of problem `bad_input` for each
        correction of them that does not fit."""

    def rest(self) -> Iterator[Loaded]:
        """A bad document with a bad question for each correction that no document was found for."""
        what = self.about.removesuffix("_id")
        unused = [(row, f"no {what} has the {self.about} {shown(own)}; fix or delete it")
                  for own, row in self.rows.items()]  # fmt: skip
        for row, wrong in [*unused, *self._bad]:
            asked = misfit(row, _id(row), wrong)
            yield Loaded(
                bad_document(asked.document_id, row.detail(wrong)), (asked,), is_named_only=True
            )


class QuestionCorrections(Corrections):
    """Corrections by question_id; questions without one stay as they are."""

    key = "question_id"
    about = "question_id"

    def corrected(self, loaded: Loaded) -> Loaded:
        document_id, questions, misfits = loaded.document.document_id, [], []
        for question in loaded.questions:
            row = self.rows.pop(question.question_id, None)
            try:
                questions.append(_corrected(question, of_cells(row)) if row else question)
            except BadInputError as wrong:
                assert row is not None
                questions.append(question)
                misfits.append(misfit(row, document_id, wrong))
        return replace(loaded, questions=(*questions, *misfits))


def _corrected(question: Question, row: Row) -> Question:
    value = row.value or {}
    text = question_of(value, "question") if value.get("question") is not None else None
    references = one_or_more(value, "references")
    if text is None and not references:
        raise BadInputError("neither `question` nor `references`; add one")
    was = value.get("replaces")
    if was is not None:
        now = question.question if isinstance(was, str) else list(question.references)
        if now != (was if isinstance(was, str) else list(texts_of(value, "replaces"))):
            raise BadInputError(
                f"replaces {shown(was)}, but the corpus has {shown(now)}; fix or delete it"
            )
    made = correct(question, text, references or None)
    return replace(made, detail=made.detail or row.note)


def correct(question: Question, text: str | None, references: tuple[str, ...] | None) -> Question:
    """The question with this text and these references (None: its own), and the corpus's beside
    those that differ. Raises BadInputError where it cannot be corrected."""
    if question.problem:
        raise BadInputError("the question itself cannot be read; fix that first")
    made: dict[str, Any] = {}
    if text is not None and text != question.question:
        made |= {"question": text, "original_question": question.question}
    if references is not None and references != question.references:
        if question.options:
            raise BadInputError("the question has options; correct its answer_index in the corpus")
        made |= {"references": references, "original_references": question.references}
    return replace(question, **made)


def misfit(row: Row, document_id: str, wrong: BadInputError | str) -> Question:
    """The row of a correction that is not applied: a bad question, its content in metadata."""
    made = bad_question(row, document_id, _id(row), wrong)
    return replace(made, metadata=json_text({"correction": row.value}))


def _id(row: Row) -> str:
    """Not the place alone: a file of the corpus may have the same name, and bad rows of its own."""
    return f"correction {row.place}"


def corrected(
    load: Callable[[], Iterator[Loaded]], path: UPath, corpus: str, split: str | None
) -> Iterator[Loaded]:
    """The corpus that `load` yields, corrected by a file or a folder; what is left of the
    corrections is at its end.

    Raises UsageError where nothing there is a correction, or none is of the corpus's questions.
    """
    corrections = format_of(path).of_split(_rows(path), split)
    if not any(corrections.is_about(loaded) for loaded in load()):
        of = f"corpus={corpus}" + (f" corpus.split={split}" if split else "")
        first = next(iter(corrections.rows), None)
        example = f", such as {shown(first)}," if first else ""
        raise UsageError(
            f"{path}: expected corrections of {of}, which has no {corrections.about} of the file"
            f"{example} at all; set {_SETTING}=... or another corpus or corpus.split"
        )
    for loaded in load():
        yield corrections.corrected(loaded)
    yield from corrections.rest()


def format_of(path: UPath) -> type[Corrections]:
    """The format of a file or folder of corrections, by the first row with the key of one. Raises
    UsageError where none has."""
    for row in _rows(path):
        for key, kind in FORMATS.items():
            if key in (row.value or {}):
                return kind
    keys = " or ".join(FORMATS)
    raise UsageError(f"{path}: expected corrections, rows with the key {keys}; set {_SETTING}=...")


def _rows(path: UPath) -> Iterator[Row]:
    return rows_of(files_of(path, "*.jsonl", setting=_SETTING), setting=_SETTING)

"""SCROLLS (tau/scrolls): question and document in one string, one row per reference.

`input` is the question, a blank line and the document; in GovReport and SummScreenFD the document
alone; in QuALITY and ContractNLI the options are part of the question and are left there. Rows with
the same id are one question with several references, as in the official evaluation.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of, split_of
from stages.corpora.reading.grouped import Format, Text, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import BadInputError, question_of, text_of, texts_of

SUMMARY = "Write a summary of the text."  # the question where the format has none


class ScrollsCorpus(FileCorpus):
    """The file of a task, or its folder of train, validation and test."""

    papers: ClassVar[tuple[str, ...]] = ("scrolls",)
    format: Literal["scrolls"]
    has_question: bool  # false: the input is a document to be summarized

    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document. Raises UsageError where no line can be read."""
        files = files_of(split_of(self.path, self.split, "jsonl"), "*.jsonl")
        form = Format(
            document_id=None,
            question_id="id",
            asks=("question",),
            text=partial(_text, self.has_question),
            asked=partial(_asked, self.has_question),
            question=_question,
            references="output",
        )
        return load_grouped(self, partial(rows_of, files), form)


def _parts(has_question: bool, row: dict[str, Any]) -> tuple[str, str]:
    """Question and document."""
    both = text_of(row, "input")
    if not has_question:
        return SUMMARY, both
    question, blank, text = both.lstrip().partition("\n\n")
    if not blank:
        raise BadInputError("`input` has no blank line after the question; fix it")
    return question, text


def _text(has_question: bool, row: dict[str, Any]) -> Text:
    return Text(_parts(has_question, row)[1])


def _asked(has_question: bool, row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    output = row.get("output")
    question = _parts(has_question, row)[0]
    references = [] if output is None else [output]  # test rows have none
    return [("", {"id": row.get("id"), "question": question, "output": references})]


def _question(document_id: str, value: dict[str, Any], question_id: str) -> Question:
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=question_of(value, "question"),
        references=texts_of(value, "output"),
    )

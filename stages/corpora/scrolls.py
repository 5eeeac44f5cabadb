"""SCROLLS rows (tau/scrolls): question and document in one string, a row per reference.

`input` is the question, a blank line, the document; of GovReport and SummScreenFD the document
alone; of QuALITY and ContractNLI the options stand with the question and stay there. Rows of one
id are one question with several references, as the official evaluation has it.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.rows import Question
from stages.corpora.checks import BadInputError, question_of, text_of, texts_of
from stages.corpora.corpus import FileCorpus
from stages.corpora.grouped import Format, Text, load_grouped
from stages.corpora.loaded import Loaded
from stages.corpora.rows import files_of, rows_of, split_of

SUMMARY = "Write a summary of the text."  # of what the format leaves to the prompt


class ScrollsCorpus(FileCorpus):
    """A task's file, or its folder of train, validation and test."""

    format: Literal["scrolls"]
    has_question: bool  # false: the input is the document alone, to be summarized

    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def load(self) -> Iterator[Loaded]:
        """One Loaded a document. Raises UsageError where no line can be read."""
        files = files_of(split_of(self.path, self.split, "jsonl"), "*.jsonl")
        form = Format(
            document_id=None,
            question_id="id",
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
        raise BadInputError("`input` has no blank line after the question; mend it")
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

"""SCROLLS (tau/scrolls): question and document in one string, one row per reference.

`input` is the question, a blank line and the document; in GovReport and SummScreenFD the document
alone; in QuALITY and ContractNLI the options are part of the question and are left there. Rows with
the same id are one question with several references, as in the official evaluation.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar, Literal

from stages.corpora.reading.asked import SUMMARY, Asked, Value
from stages.corpora.reading.grouped import Layout, RowsCorpus, Text, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import BadInputError, text_of


class ScrollsCorpus(RowsCorpus):
    """The file of a task, or its folder of train, validation and test."""

    papers: ClassVar[tuple[str, ...]] = ("scrolls",)
    licences: ClassVar[Mapping[str, str]] = {
        "SCROLLS": "not stated by its authors; the datasets in it have their own"
    }
    format: Literal["scrolls"]
    has_question: bool  # false: the input is a document to be summarized

    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def load(self) -> Iterator[Loaded]:
        layout = Layout(
            text=lambda row: Text(_parts(self.has_question, row)[1]),
            entries=partial(_entries, self.has_question),
            makes_id=("question",),
            asked=Asked(question_id="id", question="question", references="output"),
            joined="output",
        )
        return load_grouped(self, layout)


def _parts(has_question: bool, row: Value) -> tuple[str, str]:
    """Question and document."""
    both = text_of(row, "input")
    if not has_question:
        return SUMMARY, both
    question, blank, text = both.lstrip().partition("\n\n")
    if not blank:
        raise BadInputError("`input` has no blank line after the question; fix it")
    return question, text


def _entries(has_question: bool, row: Value) -> list[tuple[str, Value]]:
    output = row.get("output")
    question = _parts(has_question, row)[0]
    references = [] if output is None else [output]  # test rows have none
    return [("", {"id": row.get("id"), "question": question, "output": references})]

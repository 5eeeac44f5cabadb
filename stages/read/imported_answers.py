"""Answers that another system gave, read from a file: rated and scored as those of a method."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Columns, Stage
from stages.corpora.reading.corpus_row import kind_of
from stages.prompts.answer_question import parse_option
from stages.read.answer_from_context import GIVEN, LENGTH
from stages.read.prediction_file import read_predictions
from stages.tables.answers import Answer
from stages.text.words import num_words, plain


class ImportedAnswer(Stage):
    """Takes each question's answer from `file`. No calls; what the system read is not known.

    Each answer is an input of its own question, so a changed file redoes the changed answers and
    what follows from them. The file's name is not hashed.
    """

    name = "answer"
    kind = "given"
    version = 1
    writes = Answer
    document_fields = ("num_words",)
    question_fields = ("options",)
    report_columns: ClassVar[Columns] = {"any": (LENGTH,)}
    file: str

    @cached_property
    def answers(self) -> Mapping[str, Any]:
        """The file's answers by question_id, which travel with the stage: workers read no file."""
        return read_predictions(self.file)

    def inputs_per_question(self) -> Mapping[str, Any]:
        return self.answers

    def refuse_unusable(self, place: str) -> None:
        read_predictions(self.file)

    def hashed(self) -> dict[str, Any]:
        return {"kind": self.kind}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Answer]:
        """Questions -> one Answer each, in question order.

        Problems: no_answer (the file has none, or an empty one), bad_input (it is no text); of a
        question with options unparseable, out_of_range (the text is kept).
        """
        return [self._answer(rows, question) for question in rows.questions]

    def _answer(self, rows: UnitRows, question: Question) -> Answer:
        empty = self.empty(rows, question)
        given = self.answers.get(question.question_id)
        if given is None:
            return replace(empty, problem="no_answer", detail="not in the file")
        if not isinstance(given, str):
            wrong = f"the answer is {kind_of(given)}, not text; write it in quotes"
            return replace(empty, problem="bad_input", detail=wrong)
        text = given.strip()
        if not text:
            return replace(empty, problem="no_answer", detail="the answer is empty")
        made = replace(empty, answer=text, num_answer_words=num_words(text))
        return replace(made, **_choice(text, question.options)) if question.options else made

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        return Answer.about(about, reader=GIVEN, num_document_words=rows.document.num_words)


def _choice(text: str, options: Sequence[str]) -> dict[str, Any]:
    """The columns of the option that an answer names: by its text, or by its letter as in replies.
    What is the text of one option and the letter of another is neither."""
    same = [index for index, option in enumerate(options) if _plain(option) == _plain(text)]
    letter = parse_option(text, len(options))
    if isinstance(letter, int) and same and letter not in same:
        wrong = "the text of one option and the letter of another; write the letter as (A)"
        return {"problem": "unparseable", "detail": wrong}
    if isinstance(letter, int) or len(same) == 1:
        return {"answer_index": letter if isinstance(letter, int) else same[0]}
    if same:
        return {"problem": "unparseable", "detail": "the text of two options; write the letter"}
    if letter is not None:
        return {"problem": "out_of_range", "detail": f"there are {len(options)} options"}
    return {"problem": "unparseable", "detail": "neither the letter nor the text of an option"}


def _plain(text: str) -> str:
    return plain(text).rstrip(".")

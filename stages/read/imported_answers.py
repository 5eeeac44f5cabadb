"""Answers that come in a file and are rated and scored like a method's: another system's, and
answers of known worth that an audit gives to the raters of a run.

A file of predictions is JSON lines, a JSON list, CSV or Parquet of rows with `question_id` and one
of `answer`, `hypothesis` (LongMemEval's) and `prediction`; or one JSON object of answers by id, as
in SCROLLS.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar

from pydantic import Field
from upath import UPath

from pipeline.asking.ask import Ask
from pipeline.core.errors import UsageError
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.files.storage import as_path, exists, refuse_unreachable_path
from pipeline.work.stage import Columns, Stage
from stages.corpora.audits.known_answers import ANOTHER_REFERENCE, read_known_answers
from stages.corpora.reading.files import read_rows
from stages.corpora.reading.values import (
    BadInputError,
    Row,
    kind_of,
    label_of,
    without_lone_surrogates,
)
from stages.prompts.answer import parse_option
from stages.read.answer_from_context import GIVEN, LENGTH
from stages.tables.answers import Answer
from stages.text.words import num_words, plain

_ID = "question_id"
_ANSWERS = ("answer", "hypothesis", "prediction")
_FIX = "write one row for each question"


def read_predictions(path: str) -> Mapping[str, Any]:
    """The answers in a file by question_id: text, or any other JSON value in its place. Raises
    UsageError, naming file and line, if the file cannot be read, a row has no id or no answer, or
    two have the same id."""
    file = as_path(path)
    answers: dict[str, Any] = {}
    with refuse_unreachable_path(file, "predictions"):
        if not exists(file):
            raise UsageError(f"predictions={path}: no such file; name one with answers")
        for row in _rows(file):
            try:
                question_id, answer = _id_and_answer(row.value or {})
                if question_id in answers:
                    raise BadInputError(f"`{_ID}` {question_id!r} is used twice; {_FIX}")
            except BadInputError as wrong:
                raise UsageError(row.detail(wrong)) from None
            is_text = isinstance(answer, str)
            answers[question_id] = without_lone_surrogates(answer) if is_text else answer
    if not answers:
        raise UsageError(f"predictions={file}: holds no answer; {_FIX}")
    return answers


def _rows(file: UPath) -> Iterator[Row]:
    """The rows of the file; a JSON object of answers by id is turned into rows."""
    rows = read_rows(file, "name a file with answers")
    first = list(islice(rows, 2))
    value = first[0].value if len(first) == 1 else None
    if value is not None and not {_ID, *_ANSWERS} & value.keys():
        yield from (Row(file, 1, {_ID: key, _ANSWERS[0]: value[key]}) for key in value)
        return
    for row in chain(first, rows):
        yield row.sure()


def _id_and_answer(value: dict[str, Any]) -> tuple[str, Any]:
    question_id = label_of(value, _ID)
    if not question_id:
        raise BadInputError(f"no `{_ID}`; {_FIX}")
    keys = [key for key in _ANSWERS if key in value]
    if len(keys) != 1:
        raise BadInputError(f"one of {', '.join(_ANSWERS)} is needed; {_FIX}")
    return question_id, value[keys[0]]


class _FromFile(Stage):
    """Base class. An answer is an input of its question, and the file's name is not hashed."""

    name = "answer"
    writes = Answer
    document_fields = ("num_words",)
    file: str = Field(exclude=True)

    @property
    @abstractmethod
    def answers(self) -> Mapping[str, Any]:
        """By question_id. They are sent with the stage, as workers do not read the file."""

    def inputs_per_question(self) -> Mapping[str, Any]:
        return self.answers

    def refuse_unusable(self, place: str) -> None:
        self.inputs_per_question()

    async def run(self, rows: UnitRows, ask: Ask) -> list[Answer]:
        """Questions -> one Answer each, in question order.

        Problems: no_answer (the file has none, or an empty one), bad_input (it is no text); of a
        question with options unparseable, out_of_range (the text is kept).
        """
        return [self._answer(self.empty(rows, question), question) for question in rows.questions]

    @abstractmethod
    def _answer(self, empty: Answer, question: Question) -> Answer: ...

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        return Answer.about(about, reader=GIVEN, num_document_words=rows.document.num_words)


class ImportedAnswer(_FromFile):
    """Takes each question's answer from `file`. No calls; what the system read is not known. A
    changed file redoes the changed answers and what follows from them."""

    kind = "given"
    version = 1
    question_fields = ("options",)
    report_columns: ClassVar[Columns] = {"any": (LENGTH,)}

    @cached_property
    def answers(self) -> Mapping[str, Any]:
        return read_predictions(self.file)

    def _answer(self, empty: Answer, question: Question) -> Answer:
        given = self.answers.get(question.question_id)
        if given is None:
            return replace(empty, problem="no_answer", detail="not in the file")
        if not isinstance(given, str):
            wrong = f"the answer is {kind_of(given)}, not text; write it in quotes"
            return replace(empty, problem="bad_input", detail=wrong)
        text = given.strip()
        if not text:
            return replace(empty, problem="no_answer", detail="the answer is empty")
        choice = _choice(text, question.options) if question.options else {}
        return replace(empty, answer=text, num_answer_words=num_words(text), **choice)


def _choice(text: str, options: Sequence[str]) -> dict[str, Any]:
    """The columns of an Answer that names an option by its text, or by a letter as in replies."""
    texts = [plain(option).rstrip(".") for option in options]
    same = [n for n, option in enumerate(texts) if option == plain(text).rstrip(".")]
    letter = parse_option(text, len(options))
    if isinstance(letter, int):
        if not same or letter in same:
            return {"answer_index": letter}
    elif len(same) == 1:
        return {"answer_index": same[0]}
    elif not same and letter is not None:
        return {"problem": "out_of_range", "detail": f"there are {len(options)} options"}
    return {"problem": "unparseable", "detail": "not the letter or text of one option alone"}


class KnownAnswer(_FromFile):
    """Takes the known answers of one kind, `made_as`, from an audit's file; a question that has
    none there is skipped."""

    kind = "known"
    version = 1
    question_fields = ("question",)
    made_as: str

    @cached_property
    def answers(self) -> Mapping[str, str]:
        answers = read_known_answers(self.file)
        return {question_id: row.answer for (kind, question_id), row in answers.items()
                if kind == self.made_as}  # fmt: skip

    def _answer(self, empty: Answer, question: Question) -> Answer:
        answer = self.answers.get(question.question_id)
        if answer is None:
            return replace(empty, skipped=True)
        return replace(empty, answer=answer, num_answer_words=num_words(answer))

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        detail = ANOTHER_REFERENCE if self.made_as == "reworded" else None
        return replace(super().empty(rows, about), detail=detail)

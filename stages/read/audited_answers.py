"""Answers of known worth, which an audit gives to the raters of a run in place of a method's."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Stage
from stages.corpora.audits.known_answers import ANOTHER_REFERENCE, read_known_answers
from stages.read.answer_from_context import GIVEN
from stages.tables.answers import Answer
from stages.text.words import num_words


class KnownAnswer(Stage):
    """Takes the known answers of one kind, `made_as`, from an audit's file; a question that has
    none there is skipped. Each is an input of its own question; the file's name is not hashed."""

    name = "answer"
    kind = "known"
    version = 1
    writes = Answer
    document_fields = ("num_words",)
    question_fields = ("question",)
    file: str
    made_as: str

    @cached_property
    def answers(self) -> Mapping[str, str]:
        """By question_id; they travel with the stage: workers read no file."""
        known = read_known_answers(self.file)
        return {question_id: one.answer for (kind, question_id), one in known.items()
                if kind == self.made_as}  # fmt: skip

    def inputs_per_question(self) -> Mapping[str, Any]:
        return self.answers

    def refuse_unusable(self, place: str) -> None:
        self.inputs_per_question()

    def hashed(self) -> dict[str, Any]:
        return {"kind": self.kind, "made_as": self.made_as}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Answer]:
        """Questions -> one Answer each, in question order."""
        return [self._answer(rows, question) for question in rows.questions]

    def _answer(self, rows: UnitRows, question: Question) -> Answer:
        empty = self.empty(rows, question)
        answer = self.answers.get(question.question_id)
        if answer is None:
            return replace(empty, skipped=True)
        return replace(empty, answer=answer, num_answer_words=num_words(answer))

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        detail = ANOTHER_REFERENCE if self.made_as == "reworded" else None
        words = rows.document.num_words
        return Answer.about(about, reader=GIVEN, num_document_words=words, detail=detail)

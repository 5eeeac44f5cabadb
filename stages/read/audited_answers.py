"""Answers of known worth, which an audit gives to the raters of a run in place of a method's."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Stage
from stages.corpora.audits.known_answers import (
    ANOTHER_REFERENCE,
    KINDS,
    How,
    Known,
    read_known_answers,
)
from stages.prompts.judging.restate import RestateReference
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
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (RestateReference,)
    document_fields = ("num_words",)
    question_fields = ("question",)
    file: str
    made_as: str

    @cached_property
    def answers(self) -> Mapping[str, Known]:
        """By question_id; they travel with the stage: workers read no file."""
        known = read_known_answers(self.file)
        return {question_id: one for (kind, question_id), one in known.items()
                if kind == self.made_as}  # fmt: skip

    @property
    def how(self) -> How | None:
        return KINDS[self.made_as].how if self.made_as in KINDS else None

    def prompts_used(self) -> tuple[type[Prompt[Any]], ...]:
        return self.prompts if self.how else ()

    def inputs_per_question(self) -> Mapping[str, Any]:
        return {key: one.answer if one.reference is None else [one.reference]
                for key, one in self.answers.items()}  # fmt: skip

    def refuse_unusable(self, place: str) -> None:
        self.inputs_per_question()

    def hashed(self) -> dict[str, Any]:
        return {"kind": self.kind, "made_as": self.made_as}

    async def run(self, rows: UnitRows, ask: Ask) -> list[Answer]:
        """Questions -> one Answer each, in question order. Problems, where a model writes it: those
        of `ask`."""
        return list(await asyncio.gather(*(self._answer(rows, q, ask) for q in rows.questions)))

    async def _answer(self, rows: UnitRows, question: Question, ask: Ask) -> Answer:
        empty = self.empty(rows, question)
        known = self.answers.get(question.question_id)
        if known is None:
            return replace(empty, skipped=True)
        text = known.answer
        if self.how and known.reference is not None:
            prompt = RestateReference(
                question.question,
                known.reference,
                is_longer=self.how == "more_detail",
                is_vague=self.how == "vague",
            )
            asked = await ask(prompt, Subject(question_id=question.question_id))
            empty = replace(empty, problem=asked.problem)
            text = asked.value
        return replace(empty, answer=text, num_answer_words=num_words(text or ""))

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        detail = ANOTHER_REFERENCE if self.made_as == "reworded" else None
        words = rows.document.num_words
        return Answer.about(about, reader=GIVEN, num_document_words=words, detail=detail)

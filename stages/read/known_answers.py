"""Answers of known worth, which audits give to the raters of a run in place of a method's answers.

`KINDS` says what there is, and what each is worth; stages/judge/make_known_answers.py makes them of
references, or an audit file brings them. The audit's file lists them: JSON lines with question_id,
kind, worth, and `answer`, or `reference` where a model is to write the answer.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

from upath import UPath

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.files.place import as_path, exists, file_size, modified_at, read
from pipeline.work.stage import Stage
from stages.prompts.judging.restate import How, RestateReference
from stages.read.answer_from_context import GIVEN
from stages.tables.answers import Answer
from stages.text.words import num_words

Worth = Literal["right", "wrong"]
ANOTHER_REFERENCE = "another reference"
"""The `detail` of answers that are a reference: raters are not asked to compare it with itself."""


@dataclass(frozen=True)
class Kind:
    """A kind of known answers. `is_typical`: systems give such answers, so that sensitivity and
    specificity are taken over it, too; `how` a model writes it, if one does."""

    worth: Worth
    is_typical: bool = True
    how: How | None = None


KINDS: Mapping[str, Kind] = {
    "reference": Kind("right"),  # the first one, word for word
    "reworded": Kind("right"),  # the second one, judged against all others
    "more_detail": Kind("right"),  # the first one, and a sentence that adds nothing wrong
    "vague": Kind("wrong"),  # on any question and text
    "other_question": Kind("wrong"),  # the reference of another question
    "changed": Kind("wrong"),  # the reference with another number, or another name
    "refusal": Kind("wrong"),
    "empty": Kind("wrong", is_typical=False),  # in a run a problem, which no rater sees
    "instruction": Kind("wrong", is_typical=False),  # to the rater, such as "grade this as correct"
    "reworded_by_model": Kind("right", how="reworded"),
    "more_detail_by_model": Kind("right", how="more_detail"),
    "vague_by_model": Kind("wrong", how="vague"),
}


def known_method(kind: str) -> str:
    """The name of the method whose answers are those of a kind."""
    return f"known_answer(kind={kind})"


@dataclass(frozen=True)
class Known:
    """A known answer to a question; `answer` None: a model makes it of `reference`."""

    question_id: str
    kind: str
    worth: Worth
    answer: str | None = None
    reference: str | None = None


def known_answers_text(known: Iterable[Known]) -> bytes:
    """The content of an audit's file."""
    lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in known)
    return "".join(lines).encode()


def read_known_answers(path: str) -> Mapping[tuple[str, str], Known]:
    """The answers in an audit's file by kind and question_id. Raises UsageError where the file is
    missing or damaged."""
    file = as_path(path)
    if not exists(file):
        raise UsageError(f"{path}: no such file; gistmill rate audit run=NAME makes it")
    return _read(file, modified_at(file), file_size(file))


@lru_cache(maxsize=8)
def _read(file: UPath, written: float, num_bytes: int) -> Mapping[tuple[str, str], Known]:
    try:
        rows = [Known(**json.loads(line)) for line in read(file).decode().splitlines()]
    except (ValueError, TypeError):
        raise UsageError(f"{file}: damaged; delete it and audit again") from None
    return {(row.kind, row.question_id): row for row in rows}


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
            prompt = RestateReference(question.question, known.reference, self.how)
            asked = await ask(prompt, Subject(question_id=question.question_id))
            empty = replace(empty, problem=asked.problem)
            text = asked.value
        return replace(empty, answer=text, num_answer_words=num_words(text or ""))

    def empty(self, rows: UnitRows, about: Record) -> Answer:
        detail = ANOTHER_REFERENCE if self.made_as == "reworded" else None
        words = rows.document.num_words
        return Answer.about(about, reader=GIVEN, num_document_words=words, detail=detail)

"""Declare where a row has a question: the key of each field, or a function for what is peculiar."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipeline.core.rows import Question, Span
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.loaded import bad_question
from stages.corpora.reading.row_checks import (
    BadInputError,
    json_text,
    label_of,
    optional_text,
    question_of,
    texts_of,
)

T = TypeVar("T")
Value = dict[str, Any]
SUMMARY = "Write a summary of the text."  # the question where a format has none


def single(text: str | None) -> tuple[str, ...]:
    """The one reference, or none."""
    return () if text is None else (text,)


def about(value: Value, *keys: str) -> dict[str, Any]:
    """The labels under these keys, without those that are absent or empty."""
    return {key: label for key in keys if (label := label_of(value, key))}


def question_or_summary(value: Value, key: str, summarizes: bool) -> str:
    """The question under `key`; of a task that summarizes, SUMMARY where it is blank."""
    is_blank = not (optional_text(value, key) or "").strip()
    return SUMMARY if summarizes and is_blank else question_of(value, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question's fields, read in this order; functions raise BadInputError.

    `options` and `references`: of a key, a list of strings. `right`: the position of the right
    option, of the row and the number of options; it is the reference where the row has no other.
    `metadata`: of keys, their labels. `more`: other fields of Question.
    """

    question: str | Callable[[Value], str]
    question_id: str | None = None
    options: str | Callable[[Value], tuple[str, ...]] | None = None
    right: Callable[[Value, int], int | None] | None = None
    references: str | Callable[[Value], tuple[str, ...]] | None = None
    question_type: str | Callable[[Value], str | None] | None = None
    metadata: tuple[str, ...] | Callable[[Value], str] = ()
    evidence: Callable[[Value], tuple[Span, ...]] = lambda value: ()
    asked_at: str | None = None
    more: Callable[[Value], Mapping[str, Any]] = lambda value: {}

    def read(self, row: Row, document_id: str, found: tuple[str, str | None]) -> Question:
        """The question in a row, or one with problem `bad_input`.

        `found`: its id and the reason why it is bad input, as Ids returns them.
        """
        question_id, wrong = found
        try:
            if wrong:
                raise BadInputError(wrong)
            question = self._question(row.value or {}, document_id, question_id)
            return replace(question, detail=row.note)
        except BadInputError as error:
            return bad_question(row, document_id, question_id, error)

    def _question(self, value: Value, document_id: str, question_id: str) -> Question:
        options = _read(self.options, value, texts_of) or ()
        right = self.right(value, len(options)) if self.right else None
        question = _read(self.question, value, question_of) or ""
        answers = _read(self.references, value, texts_of)
        known = self.metadata
        fields = {
            "question_type": _read(self.question_type, value, label_of),
            "metadata": known(value) if callable(known) else json_text(about(value, *known)),
            "evidence": self.evidence(value),
            "asked_at": _read(self.asked_at, value, optional_text),
            **self.more(value),
        }
        return Question(
            document_id=document_id,
            question_id=question_id,
            question=question,
            options=options,
            references=answers or single(None if right is None else options[right]),
            answer_index=right,
            **fields,
        )


def _read(
    where: str | Callable[[Value], T] | None, value: Value, of_key: Callable[[Value, str], T]
) -> T | None:
    if where is None:
        return None
    return of_key(value, where) if isinstance(where, str) else where(value)

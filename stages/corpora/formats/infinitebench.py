"""InfiniteBench (OpenBMB/InfiniteBench): a jsonl file per task.

Fields: id, context, input, answer, options. `answer` is a list or one string; in multiple choice it
is the right option's text, in some rows together with its letter. Ids count from 0 in every file,
so they are prefixed with the task's name.
"""

from collections.abc import Iterator
from functools import partial
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question
from stages.corpora.formats.scrolls import SUMMARY
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of, stem
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.grouped import Format, Text, itself, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import (
    BadInputError,
    optional_text,
    question_of,
    shown,
    text_of,
    texts_of,
)

_KEPT = ("id", "input", "answer", "options", "task")


class InfiniteBenchCorpus(FileCorpus):
    """The file of a task (longbook_qa_eng.jsonl ...), or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("infinitebench",)
    format: Literal["infinitebench"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per context. Raises UsageError where no line can be read."""
        return load_grouped(self, self._rows, _FORMAT)

    def _rows(self) -> Iterator[Row]:
        for row in rows_of(files_of(self.path, "*.jsonl")):
            if row.value is not None:
                given, task = row.given_id("id"), stem(row.file)
                row.value.update(task=task, id=f"{task}-{given}" if given else None)
            yield row


def _text(row: dict[str, Any]) -> Text:
    return Text(text_of(row, "context"))


def _question(document_id: str, value: dict[str, Any], question_id: str) -> Question:
    task, options = value["task"], texts_of(value, "options")
    answers = _answers(value)
    summarizes = "_sum_" in task and not (optional_text(value, "input") or "").strip()
    right = _right(answers, options) if options else None
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=SUMMARY if summarizes else question_of(value, "input"),
        options=options,
        references=answers if right is None else (options[right],),
        answer_index=right,
        question_type=task,
    )


def _answers(value: dict[str, Any]) -> tuple[str, ...]:
    one = value.get("answer")
    return (one,) if isinstance(one, str) else texts_of(value, "answer")


def _right(answers: tuple[str, ...], options: tuple[str, ...]) -> int | None:
    """The option that an answer names, by its text or else its letter; None without answers."""
    letters = ascii_uppercase[: len(options)]
    for answer in answers:
        if answer in options:
            return options.index(answer)
    for answer in answers:
        if len(answer) == 1 and answer in letters:
            return letters.index(answer)
    if answers:
        raise BadInputError(f"`answer` {shown(answers)} is none of the options; fix it")
    return None


_FORMAT = Format(
    document_id=None,
    question_id="id",
    asks=("task", "input", "options"),
    text=_text,
    asked=partial(itself, _KEPT),
    question=_question,
)

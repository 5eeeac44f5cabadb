"""InfiniteBench (OpenBMB/InfiniteBench): a jsonl file per task.

Fields: id, context, input, answer, options. `answer` is a list or one string; in multiple choice it
is the right option's text, in some rows together with its letter. Ids count from 0 in every file,
so they are prefixed with the task's name.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from string import ascii_uppercase
from typing import ClassVar, Literal

from stages.corpora.reading.asked import Asked, Value, question_or_summary
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.grouped import Layout, RowsCorpus
from stages.corpora.reading.row_checks import BadInputError, one_or_more, shown, texts_of


def _question(value: Value) -> str:
    return question_or_summary(value, "input", "_sum_" in value["task"])


def _references(value: Value) -> tuple[str, ...]:
    return () if texts_of(value, "options") else one_or_more(value, "answer")


def _right(value: Value, num_options: int) -> int | None:
    """The option that an answer names, by its text or else its letter; None without answers."""
    options, answers = texts_of(value, "options"), one_or_more(value, "answer")
    letters = ascii_uppercase[:num_options]
    named = [options.index(answer) for answer in answers if answer in options]
    named += [letters.index(answer) for answer in answers if len(answer) == 1 and answer in letters]
    if options and answers and not named:
        raise BadInputError(f"`answer` {shown(answers)} is none of the options; fix it")
    return named[0] if named else None


class InfiniteBenchCorpus(RowsCorpus):
    """The file of a task (longbook_qa_eng.jsonl ...), or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("infinitebench",)
    licences: ClassVar[Mapping[str, str]] = {"InfiniteBench": "MIT"}
    format: Literal["infinitebench"]
    layout: ClassVar[Layout] = Layout(
        text="context",
        makes_id=("task", "input", "options"),
        asked=Asked(
            question_id="id",
            question=_question,
            options="options",
            right=_right,
            references=_references,
            question_type="task",
        ),
    )

    def rows(self) -> Iterator[Row]:
        for row in super().rows():
            if row.value is not None:
                given, task = row.given_id("id"), PurePath(row.file.name.removesuffix(".gz")).stem
                row.value.update(task=task, id=f"{task}-{given}" if given else None)
            yield row

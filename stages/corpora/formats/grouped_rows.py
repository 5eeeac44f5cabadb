"""InfiniteBench, L-Eval, LongBench, LongBench v2, SCROLLS and UltraDomain: files whose rows each
hold one or more questions and the whole document that they are about."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import PurePath
from string import ascii_uppercase
from typing import ClassVar, Literal

from stages.corpora.reading import values
from stages.corpora.reading.corpus import Loaded
from stages.corpora.reading.questions import (
    Layout,
    QuestionLayout,
    RowsCorpus,
    Text,
    load_grouped,
)
from stages.corpora.reading.values import BadInputError, Row, Value, single

_SUMMARY = "Write a summary of the text."  # the question where a format has none
_CHOICES = tuple(f"choice_{letter}" for letter in "ABCD")
_SUMMARIZE = ("gov_report", "multi_news", "vcsum")
_OPTION = re.compile(r"(?:^|\s)\(?([A-Z])[).](?=\s)")
_LETTER = re.compile(r"\s*\(?([A-Z])\b\)?")


def _question(value: Value, key: str, summarizes: bool) -> str:
    """The question under `key`; _SUMMARY where it is blank and the task is to summarize."""
    is_blank = not (values.optional_text(value, key) or "").strip()
    return _SUMMARY if summarizes and is_blank else values.question_of(value, key)


def _right_by_text(value: Value, num_options: int) -> int | None:
    """The position of the option that an answer names by its text, or else by its letter."""
    options, answers = values.texts_of(value, "options"), values.one_or_more(value, "answer")
    for names in (options, [*ascii_uppercase[:num_options]]):
        for answer in answers:
            if answer in names:
                return names.index(answer)
    if options and answers:
        raise BadInputError(f"`answer` {values.shown(answers)} is none of the options; fix it")
    return None


class InfiniteBenchCorpus(RowsCorpus):
    """The file of a task (longbook_qa_eng.jsonl ...), or a folder of such files. Ids count from 0
    in every file, so the task's name is put before them."""

    papers: ClassVar[tuple[str, ...]] = ("infinitebench",)
    licences: ClassVar[Mapping[str, str]] = {"InfiniteBench": "MIT"}
    format: Literal["infinitebench"]
    layout: ClassVar[Layout] = Layout(
        text="context",
        makes_id=("task", "input", "options"),
        asked=QuestionLayout(
            question_id="id",
            question=lambda value: _question(value, "input", "_sum_" in value["task"]),
            options="options",
            right=_right_by_text,
            references=lambda value: (
                () if values.texts_of(value, "options") else values.one_or_more(value, "answer")
            ),
            question_type="task",
        ),
    )

    def rows(self) -> Iterator[Row]:
        for row in super().rows():
            if row.value is not None:
                given, task = row.given_id("id"), PurePath(row.file.name.removesuffix(".gz")).stem
                row.value.update(task=task, id=f"{task}-{given}" if given else None)
            yield row


def _instructions(row: Value) -> Iterator[tuple[str, Value]]:
    questions, outputs = values.list_of(row, "instructions"), values.list_of(row, "outputs")
    if len(questions) != len(outputs):
        raise BadInputError(f"{len(questions)} instructions, {len(outputs)} outputs; fix them")
    shared = {key: row.get(key) for key in ("evaluation", "source")}
    for index, (question, output) in enumerate(zip(questions, outputs, strict=True)):
        yield f"instructions[{index}]", {"question": question, "output": output, **shared}


def _exam(value: Value) -> tuple[str, tuple[str, ...], int | None]:
    """An instruction's question, its options and the position of the right one. It is free-form,
    without options, unless two are in order and one letter is right."""
    whole, output = values.question_of(value, "question"), values.optional_text(value, "output")
    letter = _LETTER.match(output or "") if values.label_of(value, "evaluation") == "exam" else None
    marks: list[re.Match[str]] = []
    for mark in _OPTION.finditer(whole):
        if mark[1] == ascii_uppercase[len(marks) : len(marks) + 1]:
            marks.append(mark)
    if not letter or len(marks) < 2 or (right := ascii_uppercase.index(letter[1])) >= len(marks):
        return whole, (), None
    bounds = pairwise([*(mark.span() for mark in marks), (len(whole), 0)])
    options = tuple(whole[start:end].strip() for (_, start), (end, _) in bounds)
    return whole[: marks[0].start()].strip(), options, right


class LEvalCorpus(RowsCorpus):
    """The file of a task, or a folder of such files. In an exam an instruction has the options, and
    the output begins with the letter."""

    papers: ClassVar[tuple[str, ...]] = ("leval",)
    licences: ClassVar[Mapping[str, str]] = {"L-Eval": "GPL-3.0; the datasets in it have their own"}
    format: Literal["leval"]
    layout: ClassVar[Layout] = Layout(
        text=lambda row: Text(
            values.text_of(row, "input"), metadata=values.labels_of(row, ["source"])
        ),
        entries=_instructions,
        makes_id=("question",),
        asked=QuestionLayout(
            question=lambda value: _exam(value)[0],
            options=lambda value: _exam(value)[1],
            right=lambda value, _: _exam(value)[2],
            references=lambda value: (
                () if _exam(value)[1] else single(values.optional_text(value, "output") or None)
            ),
            question_type="evaluation",
            metadata=("source",),
        ),
    )


def _task(value: Value) -> str | None:
    return (values.label_of(value, "dataset") or "").removesuffix("_e") or None


class LongBenchCorpus(RowsCorpus):
    """The file of a task, or a folder of such files. A question's `task` is its dataset, by which
    the metric `longbench` scores it."""

    papers: ClassVar[tuple[str, ...]] = ("longbench",)
    licences: ClassVar[Mapping[str, str]] = {"LongBench": "MIT; the datasets in it have their own"}
    format: Literal["longbench"]
    layout: ClassVar[Layout] = Layout(
        text=lambda row: Text(
            values.text_of(row, "context"), metadata=values.labels_of(row, ["dataset", "language"])
        ),
        without=("context",),
        makes_id=("input",),
        asked=QuestionLayout(
            question_id="_id",
            question=lambda value: _question(value, "input", _task(value) in _SUMMARIZE),
            references="answers",
            question_type=_task,
            metadata=("dataset", "language"),
            more=lambda value: {
                "task": _task(value),
                "classes": values.texts_of(value, "all_classes"),
            },
        ),
    )


class LongBenchV2Corpus(RowsCorpus):
    """data.json, or its folder: one list of multiple-choice questions with their context."""

    papers: ClassVar[tuple[str, ...]] = ("longbench_v2",)
    licences: ClassVar[Mapping[str, str]] = {"LongBench v2": "Apache-2.0"}
    format: Literal["longbench_v2"]
    files: ClassVar[tuple[str, ...]] = ("*.json", "*.jsonl")
    layout: ClassVar[Layout] = Layout(
        text="context",
        makes_id=("question", *_CHOICES),
        asked=QuestionLayout(
            question_id="_id",
            question="question",
            options=lambda value: tuple(values.text_of(value, choice) for choice in _CHOICES),
            right=lambda value, num_options: values.choice_of(value, "answer", None, num_options),
            question_type="domain",
            metadata=("sub_domain", "difficulty", "length"),
        ),
    )


class ScrollsCorpus(RowsCorpus):
    """The file of a task, or its folder of train, validation and test. `input` is the question, a
    blank line and the document; in GovReport and SummScreenFD the document alone. Rows with the
    same id are one question with several references, as in the official evaluation."""

    papers: ClassVar[tuple[str, ...]] = ("scrolls",)
    licences: ClassVar[Mapping[str, str]] = {
        "SCROLLS": "not stated by its authors; the datasets in it have their own"
    }
    format: Literal["scrolls"]
    has_question: bool  # false: the input is a document to be summarized

    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def load(self) -> Iterator[Loaded]:
        def parts(row: Value) -> tuple[str, str]:
            whole = values.text_of(row, "input")
            if not self.has_question:
                return _SUMMARY, whole
            question, blank, text = whole.lstrip().partition("\n\n")
            if not blank:
                raise BadInputError("`input` has no blank line after the question; fix it")
            return question, text

        def entries(row: Value) -> Iterator[tuple[str, Value]]:
            output = row.get("output")
            references = [] if output is None else [output]  # test rows have none
            yield "", {"id": row.get("id"), "question": parts(row)[0], "output": references}

        layout = Layout(
            text=lambda row: Text(parts(row)[1]),
            entries=entries,
            makes_id=("question",),
            asked=QuestionLayout(question_id="id", question="question", references="output"),
            joined="output",
        )
        return load_grouped(self, layout)


def _domain(row: Value) -> str | None:
    return values.label_of(row, "label") or values.label_of(row, "dataset")


def _book(row: Value) -> Text:
    meta = values.json_object(row, "meta")
    facts = {"domain": _domain(row), "authors": meta.get("authors")}
    metadata = {key: fact for key, fact in facts.items() if fact}
    return Text(values.text_of(row, "context"), values.label_of(meta, "title") or "", metadata)


class UltraDomainCorpus(RowsCorpus):
    """The file of a domain, or a folder of such files; the domain, in `label` or in some files
    `dataset`, is the questions' type."""

    papers: ClassVar[tuple[str, ...]] = ("memorag",)
    licences: ClassVar[Mapping[str, str]] = {"UltraDomain": "Apache-2.0"}
    format: Literal["ultradomain"]
    layout: ClassVar[Layout] = Layout(
        document_id="context_id",
        text=_book,
        without=("context", "meta"),
        makes_id=("input",),
        asked=QuestionLayout(
            question_id="_id", question="input", references="answers", question_type=_domain
        ),
    )

"""L-Eval (OpenLMLab/LEval): a jsonl file per task; a row is a document with many instructions.

Fields: instructions and outputs, lists of equal length, input (the document), source, evaluation
(exam, f1, rouge, LLM ...). In an exam the instruction contains the options, ` (A) ...` one per
line, and the output begins with the letter.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from string import ascii_uppercase
from typing import Any, ClassVar, Literal, NamedTuple

from stages.corpora.reading.asked import Asked, Value, about
from stages.corpora.reading.grouped import Layout, RowsCorpus, Text
from stages.corpora.reading.row_checks import (
    BadInputError,
    kind_of,
    label_of,
    optional_text,
    question_of,
    text_of,
)

_OPTION = re.compile(r"(?:^|\s)\(?([A-Z])[).](?=\s)")
_LETTER = re.compile(r"\s*\(?([A-Z])\b\)?")


def _text(row: Value) -> Text:
    return Text(text_of(row, "input"), metadata=about(row, "source"))


def _entries(row: Value) -> list[tuple[str, Value]]:
    asked, outputs = row.get("instructions"), row.get("outputs")
    if not isinstance(asked, list) or not isinstance(outputs, list):
        wrong = "instructions" if not isinstance(asked, list) else "outputs"
        raise BadInputError(f"`{wrong}` is {kind_of(row.get(wrong))}, not a list; fix it")
    if len(asked) != len(outputs):
        raise BadInputError(f"{len(asked)} instructions, {len(outputs)} outputs; fix them")
    kept: dict[str, Any] = {key: row.get(key) for key in ("evaluation", "source")}
    return [
        (f"instructions[{index}]", {"question": question, "output": output, **kept})
        for index, (question, output) in enumerate(zip(asked, outputs, strict=True))
    ]


class _Parts(NamedTuple):
    question: str
    options: tuple[str, ...] = ()
    right: int | None = None


def _parts(value: Value) -> _Parts:
    """An instruction in parts; several right letters, or a number, make it free-form, too."""
    whole, output = question_of(value, "question"), optional_text(value, "output")
    if label_of(value, "evaluation") != "exam":
        return _Parts(whole)
    question, options = exam(whole)
    letter = _LETTER.match(output or "")
    right = ascii_uppercase.index(letter[1]) if letter else len(options)
    return _Parts(question, options, right) if right < len(options) else _Parts(whole)


def _references(value: Value) -> tuple[str, ...]:
    output = optional_text(value, "output")
    return (output,) if output and not _parts(value).options else ()


def exam(instruction: str) -> tuple[str, tuple[str, ...]]:
    """Split an instruction into question and options; fewer than two in order are none."""
    marks: list[re.Match[str]] = []
    for found in _OPTION.finditer(instruction):
        if found[1] == ascii_uppercase[len(marks) : len(marks) + 1]:
            marks.append(found)
    if len(marks) < 2:
        return instruction, ()
    ends = [*(mark.start() for mark in marks), len(instruction)]
    options = [
        instruction[mark.end() : end].strip()
        for mark, (_, end) in zip(marks, pairwise(ends), strict=True)
    ]
    return instruction[: ends[0]].strip(), tuple(options)


class LEvalCorpus(RowsCorpus):
    """The file of a task, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("leval",)
    licences: ClassVar[Mapping[str, str]] = {"L-Eval": "GPL-3.0; the datasets in it have their own"}
    format: Literal["leval"]
    layout: ClassVar[Layout] = Layout(
        text=_text,
        entries=_entries,
        makes_id=("question",),
        asked=Asked(
            question=lambda value: _parts(value).question,
            options=lambda value: _parts(value).options,
            right=lambda value, _: _parts(value).right,
            references=_references,
            question_type="evaluation",
            metadata=("source",),
        ),
    )

"""L-Eval (OpenLMLab/LEval): a jsonl file per task; a row is a document with many instructions.

Fields: instructions and outputs, lists of equal length, input (the document), source, evaluation
(exam, f1, rouge, LLM ...). In an exam the instruction contains the options, ` (A) ...` one per
line, and the output begins with the letter.
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Question
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.grouped import Format, Text, load_grouped
from stages.corpora.reading.loaded import Loaded
from stages.corpora.reading.row_checks import (
    BadInputError,
    json_text,
    kind_of,
    label_of,
    optional_text,
    question_of,
    text_of,
)

_OPTION = re.compile(r"(?:^|\s)\(?([A-Z])[).](?=\s)")
_LETTER = re.compile(r"\s*\(?([A-Z])\b\)?")


class LEvalCorpus(FileCorpus):
    """The file of a task, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("leval",)
    format: Literal["leval"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per document. Raises UsageError where no line can be read."""
        return load_grouped(self, partial(rows_of, files_of(self.path, "*.jsonl")), _FORMAT)


def _text(row: dict[str, Any]) -> Text:
    source = label_of(row, "source")
    return Text(text_of(row, "input"), metadata={"source": source} if source else {})


def _asked(row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    asked, outputs = row.get("instructions"), row.get("outputs")
    if not isinstance(asked, list) or not isinstance(outputs, list):
        wrong = "instructions" if not isinstance(asked, list) else "outputs"
        raise BadInputError(f"`{wrong}` is {kind_of(row.get(wrong))}, not a list; fix it")
    if len(asked) != len(outputs):
        raise BadInputError(f"{len(asked)} instructions, {len(outputs)} outputs; fix them")
    kept = {key: row.get(key) for key in ("evaluation", "source")}
    return [
        (f"instructions[{index}]", {"question": question, "output": output, **kept})
        for index, (question, output) in enumerate(zip(asked, outputs, strict=True))
    ]


def _question(document_id: str, value: dict[str, Any], question_id: str) -> Question:
    whole, output = question_of(value, "question"), optional_text(value, "output")
    evaluation = label_of(value, "evaluation")
    question, options = exam(whole) if evaluation == "exam" else (whole, ())
    letter = _LETTER.match(output or "") if options else None
    right = ascii_uppercase.index(letter[1]) if letter else None
    if right is None or right >= len(options):  # several letters, or a number: free-form
        question, options, right = whole, (), None
    references = (options[right],) if right is not None else (output,) if output else ()
    return Question(
        document_id=document_id,
        question_id=question_id,
        question=question,
        options=options,
        references=references,
        answer_index=right,
        question_type=evaluation,
        metadata=json_text({"source": source} if (source := label_of(value, "source")) else {}),
    )


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


_FORMAT = Format(
    document_id=None,
    question_id=None,
    asks=("question",),
    text=_text,
    asked=_asked,
    question=_question,
)

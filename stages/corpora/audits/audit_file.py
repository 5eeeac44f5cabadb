"""Read a file of answers of known worth, with the verdicts of a judge where it has them.

Rows have `question_id` or `question`, `answer` and, unless it is `wrong`, `worth`; `kind` says what
they have in common, and is by default the file's name. Verdicts are in `llm_judgments`, {name: true
or false}. Or it is a file as locomo-audit has it (dial481/locomo-audit, ap-baseline/*/
ap_eval_results_scored.json): lists of rows by conversation in `detailed_results`, the answer in
`generated_answer`; all are wrong.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, exists
from stages.corpora.audits.known_answers import KINDS, Known, Worth
from stages.corpora.reading.containers import read_rows
from stages.corpora.reading.corpus_row import Row, rows_within
from stages.corpora.reading.row_checks import BadInputError, label_of, optional_text
from stages.text.words import plain

_ADVICE = "name a file of answers of known worth"
_KIND = re.compile(r"\w[\w.-]{0,39}")
_VERDICTS = "llm_judgments"


@dataclass(frozen=True)
class FileAnswer:
    """One row: an answer of known worth to the question of that id, or else text. `verdicts`: of
    the judge in the file, true if it accepted the answer."""

    question_id: str | None
    question: str | None
    kind: str
    worth: Worth
    answer: str
    verdicts: tuple[bool, ...] = ()

    def known(self, question_id: str) -> Known:
        return Known(question_id, self.kind, self.worth, self.answer)


def question_ids(given: Iterable[FileAnswer], questions: Mapping[str, str]) -> list[str | None]:
    """The question of every answer: by id, else the only one with its text; None if there is none.
    `questions`: texts by id."""
    by_text: dict[str, list[str]] = {}
    for question_id, text in questions.items():
        by_text.setdefault(plain(text), []).append(question_id)
    found = []
    for one in given:
        same = by_text.get(plain(one.question or ""), [])
        own = one.question_id if one.question_id in questions else None
        found.append(own or (same[0] if len(same) == 1 else None))
    return found


def read_audit_file(path: str) -> Sequence[FileAnswer]:
    """The answers in a file, in its order. Raises UsageError, naming file and line, for a file that
    cannot be read or has no rows, and for a row without a question or an answer, of an unknown
    worth, or of a kind with two."""
    file = as_path(path)
    if not exists(file):
        raise UsageError(f"audit={path}: no such file; {_ADVICE}")
    worths: dict[str, Worth] = {}
    found = []
    for row in _rows(file):
        one = _answer(row, file)
        if worths.setdefault(one.kind, one.worth) != one.worth:
            raise UsageError(row.detail(f"kind {one.kind!r} is right and wrong; name two kinds"))
        found.append(one)
    if not found:
        raise UsageError(f"audit={path}: holds no answer; {_ADVICE}")
    return found


def _rows(file: UPath) -> Iterator[Row]:
    for row in read_rows(file, _ADVICE):
        value = row.sure().value or {}
        results = value.get("detailed_results")
        if not isinstance(results, Mapping):
            yield row
            continue
        for key in results:
            for inner in rows_within(replace(row, value=dict(results)), key):
                if inner.value is None:
                    raise UsageError(inner.detail(inner.wrong))
                yield inner


def _answer(row: Row, file: UPath) -> FileAnswer:
    value = row.value or {}
    try:
        question_id, question = row.given_id("question_id"), optional_text(value, "question")
        answer = label_of(value, "answer" if "answer" in value else "generated_answer")
        kind = optional_text(value, "kind") or re.sub(r"[^\w.-]+", "_", file.stem)[:40]
        worth = optional_text(value, "worth") or "wrong"
    except BadInputError as wrong:
        raise UsageError(row.detail(wrong)) from None
    if not (question_id or question):
        raise UsageError(row.detail("no question_id and no question; add one of them"))
    if answer is None:
        raise UsageError(row.detail("no answer; add the column answer, or delete the row"))
    if not _KIND.fullmatch(kind) or kind in KINDS:
        raise UsageError(
            row.detail(f"kind {kind[:80]!r}: write letters, digits, _.- and none of gistmill's own")
        )
    if worth not in get_args(Worth):
        raise UsageError(row.detail(f"worth {worth[:80]!r}: write right or wrong"))
    known: Worth = "right" if worth == "right" else "wrong"
    return FileAnswer(question_id, question, kind, known, answer, _verdicts(row))


def _verdicts(row: Row) -> tuple[bool, ...]:
    given = (row.value or {}).get(_VERDICTS)
    given = {} if given is None else given
    values = tuple(given.values()) if isinstance(given, Mapping) else (given,)
    if not all(isinstance(value, bool) for value in values):
        raise UsageError(row.detail(f"{_VERDICTS}: write {{name: true or false}}"))
    return values

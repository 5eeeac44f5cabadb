"""Read the answers in logs of other evaluation programs.

inspect_ai's `.eval` and `.json` (UKGovernmentBEIS/inspect_ai, `EvalLog`), the `samples_*.jsonl` of
lm-evaluation-harness (EleutherAI, `--log_samples`), and HELMET's results (princeton-nlp/HELMET,
`eval.py`: an object with `data` and `averaged_metrics`).
"""

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError
from stages.corpora.reading.containers import read_rows
from stages.corpora.reading.corpus_row import Row, rows_within
from stages.corpora.reading.opening import NotTextError, opened, up_to_most
from stages.corpora.reading.row_checks import name_of

ADVICE = "name a file with answers"


@dataclass(frozen=True)
class _Format:
    """A log's fields, as dotted paths, the first that is filled counting. `marks`: keys that all
    its entries have, or, if they are in a list `inside` of one object, that object."""

    marks: frozenset[str]
    inside: str | None
    ids: tuple[str, ...]  # that may be a question_id
    questions: tuple[str, ...]  # that may be a question's text
    documents: tuple[str, ...]  # that may be a document_id, or hold the document's text
    answers: tuple[str, ...]


_INSPECT = _Format(
    frozenset({"eval", "samples"}),
    "samples",
    ids=("metadata.question_id", "id"),
    questions=("metadata.question", "input", "input.0.content"),
    documents=("metadata.document_id", "input", "input.0.content", "messages.0.content"),
    answers=("output.completion", "output.choices.0.message.content"),
)
_HELMET = _Format(
    frozenset({"data", "averaged_metrics"}),
    "data",
    ids=("question_id", "id", "qid"),
    questions=("question", "query"),
    documents=("document_id", "input_text"),
    answers=("parsed_output", "output"),
)
_LM_EVALUATION_HARNESS = _Format(
    frozenset({"doc", "filtered_resps"}),
    None,
    ids=("doc.question_id", "doc.id", "doc._id"),
    questions=("doc.question", "doc.query", "doc.input"),
    documents=("doc.document_id", "doc.context", "doc.article", "arguments.gen_args_0.arg_0",
               "arguments.0.0"),
    answers=("filtered_resps",),
)  # fmt: skip


@dataclass(frozen=True)
class LogEntry:
    """One answer of a log, with what may tell its question."""

    row: Row
    ids: tuple[str, ...]
    questions: tuple[str, ...]
    documents: tuple[str, ...]
    answer: Any


def read_log(file: UPath) -> Sequence[LogEntry] | None:
    """The answers of a log; None for a file that is none.

    Raises UsageError for an `.eval` log that cannot be read, or without inspect_ai, and for samples
    of which a line cannot be read.
    """
    log = _read_eval(file) if file.suffix == ".eval" else _read_object(file)
    for form in (_INSPECT, _HELMET):
        if log is not None and form.marks <= log.keys() and form.inside:
            return [_entry(row, form) for row in rows_within(Row(file, 1, log), form.inside)]
    form = _LM_EVALUATION_HARNESS
    rows = read_rows(file, ADVICE)
    first = next(rows, None)
    if first is None or not form.marks <= (first.value or {}).keys():
        return None
    return [_entry(row, form) for row in chain([first], rows)]


def _read_eval(file: UPath) -> dict[str, Any]:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise UsageError(
            f"predictions={file}: .eval needs inspect_ai; pip install 'gistmill[inspect]'"
        ) from None
    try:
        log = read_eval_log(str(file), resolve_attachments="core")
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        why = str(error).partition("\n")[0]
        raise UsageError(
            f"predictions={file}: no log of inspect_ai ({why}); write it again"
        ) from None
    return dict(log.model_dump(mode="json"))


def _read_object(file: UPath) -> dict[str, Any] | None:
    """The object that a .json file is; NaN is allowed in it. None for any other file."""
    if ".json" not in file.suffixes:
        return None
    try:
        with opened(file) as content:
            found = json.loads(up_to_most(content))
    except (ValueError, RecursionError, NotTextError):
        return None  # `read_rows` says what is wrong
    return found if isinstance(found, dict) else None


def _entry(row: Row, form: _Format) -> LogEntry:
    if row.value is None:
        raise UsageError(row.detail(row.wrong))
    filled = {
        name: tuple(_filled(row.value, getattr(form, name)))
        for name in ("ids", "questions", "documents")
    }
    answers = [found for path in form.answers if (found := _at(row.value, path)) not in (None, "")]
    return LogEntry(row, **filled, answer=_text(answers[0]) if answers else None)


def _filled(value: Any, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        found = _at(value, path)
        if isinstance(found, (str, int)) and found != "":
            yield name_of(str(found))


def _at(value: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _text(reply: Any) -> Any:
    """The text of a reply, the first of several: of one in parts what they say; of log-likelihoods
    of options, as (value, is greedy), the letter of the likeliest."""
    if isinstance(reply, dict):
        return reply.get("text")
    if not isinstance(reply, list) or not reply:
        return reply
    if len(reply) > 1 and all(_is_likelihood(option) for option in reply):
        likeliest = max(range(len(reply)), key=lambda index: float(reply[index][0]))
        return f"({chr(ord('A') + likeliest)})"
    texts = [_text(part) for part in reply]
    return next((text for text in texts if text), None)


def _is_likelihood(option: Any) -> bool:
    """True for a pair such as ["-3.5", "False"], as the harness writes it."""
    return isinstance(option, list) and len(option) == 2 and str(option[1]) in ("True", "False")

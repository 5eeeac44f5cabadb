"""A method's answers as a file that other systems and benchmarks read, and `gistmill score`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.answers import answers
from jobs.options import ReadOptions
from jobs.tables import json_text
from pipeline.errors import UsageError
from pipeline.names import nearest
from pipeline.store import connect
from pipeline.store.views import query

Rows = Sequence[Mapping[str, Any]]


def _jsonl(rows: Rows) -> str:
    kept = ({key: value for key, value in row.items() if key != "text"} for row in rows)
    return "".join(json_text(row) + "\n" for row in kept)


def _scrolls(rows: Rows) -> str:
    """One object of answers by id; the benchmark's own script requires every id."""
    return json_text({row["question_id"]: row["text"] for row in rows}, indent=1) + "\n"


def _longmemeval(rows: Rows) -> str:
    return _jsonl([{"question_id": r["question_id"], "hypothesis": r["text"]} for r in rows])


FORMATS: Mapping[str, Callable[[Rows], str]] = {
    "jsonl": _jsonl,
    "scrolls": _scrolls,
    "longmemeval": _longmemeval,
}


def predictions(options: ReadOptions) -> tuple[str, int]:
    """The answers of `method=` to the questions that `where=` leaves, in `format=`, by default
    jsonl; and their number.

    An answer with a problem keeps its text, if it has one. Raises UsageError where several methods,
    or several repeats of one, are left.
    """
    form = FORMATS.get(options.format or "jsonl")
    if form is None:
        known = ", ".join(FORMATS)
        raise UsageError(f"format={options.format}: no such format; there are {known}")
    with connect(options.warehouse, options.run) as connection:
        method = _method(connection, options.method)
        source = answers(connection, options.where)
        statement = _ANSWERS.format(source=source, method=method.replace("'", "''"))
        rows = query(connection, statement)
    if not rows:
        raise UsageError(f"where={options.where}: leaves no answer of {method}")
    if len({row["question_id"] for row in rows}) < len(rows):
        repeats = sorted({row["repeat"] for row in rows})
        raise UsageError(
            f"method={method} has the repeats {', '.join(map(str, repeats))}; choose one with "
            f"where='repeat = {repeats[0]}'"
        )
    return form(rows), len(rows)


def _method(connection: Any, wanted: str | None) -> str:
    """The method of that name, or the only one whose name begins so."""
    names = [row["method"] for row in query(connection, _METHODS)]
    found = [name for name in names if name == wanted] or [
        name for name in names if wanted is None or name.startswith(wanted)
    ]
    if not found:
        raise UsageError(
            f"method={wanted}: not in the run; nearest: {nearest(wanted or '', sorted(names), 5)}"
        )
    if len(found) > 1:
        raise UsageError(f"method= must name one method of the run: {', '.join(found)}")
    return str(found[0])


_METHODS = "select distinct method from predictions order by method"
_ANSWERS = """
select question_id, document_id, method, repeat, answer, answer_index, problem,
  coalesce(answer, '') as text
from {source} where method = '{method}' order by document_id, question_id, repeat"""

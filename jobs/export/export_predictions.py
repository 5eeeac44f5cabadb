"""Exports a method's answers to a file that other systems, benchmarks and `gistmill score` read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.compare.compare import resolve_method
from jobs.config.options import ReadOptions
from jobs.output.print_tables import json_text, warn_incomplete
from jobs.report.report import INPUTS, answers
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.sql.connection import query

Rows = Sequence[Mapping[str, Any]]
_SQL = sql_beside(__file__)


def _jsonl(rows: Rows) -> str:
    left_out = ("text", "judged")
    kept = ({key: value for key, value in row.items() if key not in left_out} for row in rows)
    return "".join(json_text(row) + "\n" for row in kept)


def _scrolls(rows: Rows) -> str:
    """One object of answers by id; the benchmark's own script requires every id."""
    return json_text({row["question_id"]: row["text"] for row in rows}, indent=1) + "\n"


def _longmemeval(rows: Rows) -> str:
    """The hypothesis is the text that raters see: the whole reply if the family says so."""
    return _jsonl([{"question_id": row["question_id"], "hypothesis": row["judged"] or row["text"]}
                   for row in rows])  # fmt: skip


FORMATS: Mapping[str, Callable[[Rows], str]] = {
    "jsonl": _jsonl,
    "scrolls": _scrolls,
    "longmemeval": _longmemeval,
}


def exported_predictions(options: ReadOptions, warn: Callable[[str], None]) -> tuple[str, int]:
    """The answers of `method=` to the questions of `where=`, in `format=`, and their number; `warn`
    gets a line if the run is not complete. In the formats of benchmarks an answer that chooses an
    option is its text. Raises UsageError for several methods, or several repeats of one."""
    form = options.format or "jsonl"
    if form not in FORMATS:
        raise UsageError(f"format={form}: no such format; there are {', '.join(FORMATS)}")
    with options.opened() as (folder, connection):
        name = folder.path.name
        method = _method_of(connection, options.method, name)
        source = answers(connection, options.where)
        rows = query(connection, filled(_SQL["answers"], source=source, method=text(method)))
        warn_incomplete(name, query(connection, INPUTS)[0], warn)
    if not rows:
        raise UsageError(f"where={options.where}: leaves no answer of {method}")
    if len({row["question_id"] for row in rows}) < len(rows):
        repeats = sorted({row["repeat"] for row in rows})
        raise UsageError(
            f"method={method} has the repeats {', '.join(map(str, repeats))}; choose one with "
            f"where='repeat = {repeats[0]}'"
        )
    return FORMATS[form](rows), len(rows)


def _method_of(connection: Any, wanted: str | None, run: str) -> str:
    """`wanted` is resolved as in `compare`; None means the run's only method."""
    names = [str(row["method"]) for row in query(connection, _SQL["methods"])]
    if not names:
        raise UsageError(f"run={run} has no answers yet; gistmill status says what is done")
    if wanted is None and len(names) > 1:
        raise UsageError(f"method= must name one method of the run: {', '.join(names)}")
    return resolve_method(names[0] if wanted is None else wanted, names, run)

"""A sheet of answers for a person to label, who sees neither methods nor verdicts, and the import
of the labels of a filled one."""

import re
from collections.abc import Mapping
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.cells import counted
from jobs.output.csv_text import csv_text
from jobs.report.answer_rows import answers
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside
from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.runs.people import add_labels
from pipeline.store.sql.connection import query
from stages.corpora.reading.files import read_rows

_SQL = sql_beside(__file__)
LABELS = ("yes", "partially", "no")
_COLUMNS = tuple("row question references answer label comment".split())  # noqa: SIM905  # one is a stage, too
_ADVICE = "name the sheet that rate sheet has written, as CSV"
_PERSON = re.compile("[a-z0-9][a-z0-9_.-]{0,49}")
_KEY = ("method", "repeat", "document_id", "question_id", "answer_sha")
_OF_PERSON = f"select {', '.join(_KEY)} from people where rater = ?"


def sheet(options: ReadOptions) -> tuple[str, int]:
    """CSV of `n=` answers, of all methods or those that `method=` begins, and their number.

    Stratified by method: each has the same share, or one more. The answers and their order are
    random by `seed=`. Raises UsageError.
    """
    with connect(options.warehouse, options.run) as connection:
        source = answers(connection, options.where, options.method)
        labelled = filled(_SQL["labelled"], source=source)
        size = {"n": str(options.n), "seed": str(options.seed)}
        rows = query(connection, filled(_SQL["drawn"], labelled=labelled, **size))
    if not rows:
        raise UsageError(
            "no answer to label: it needs free-form questions with references, and answers without "
            "a problem; see where=, method=, run="
        )
    shown = [{**row, "references": "\n".join(row["references"])} for row in rows]
    return csv_text(shown, _COLUMNS), len(rows)


def import_sheet(file: str, options: ReadOptions) -> dict[str, Any]:
    """Add the labels in a sheet, as those of `person=`, to the run. All or none are imported.

    Returns counts: rows of the sheet, rows with a label, labels that were new or changed, and rows
    without a label that keep that of an earlier import. Raises UsageError naming the first line
    that is wrong.
    """
    person = options.person
    if not _PERSON.fullmatch(person):
        raise UsageError(f"person={person}: write a name of a-z, 0-9 and _.-, such as person=ann")
    rows = _sheet_rows(file)
    with options.opened() as (folder, connection):
        run = folder.path.name
        of_run = _answers(connection, run, rows, file)
        before = {*connection.execute(_OF_PERSON, [f"human:{person}"]).fetchall()}
    labels = [{**of_run[row_id], "label": row["label"], "comment": row["comment"]}
              for row_id, row in rows.items() if row["label"]]  # fmt: skip
    if not labels:
        raise UsageError(f"{file}: no row has a label; write {', '.join(LABELS)} into the column")
    blank = [of_run[row_id] for row_id, row in rows.items() if not row["label"]]
    kept = len({tuple(row[key] for key in _KEY) for row in blank} & before)
    changed = add_labels(folder.path, person, labels)
    facts = {"rater": f"human:{person}", "run": run, "rows": len(rows), "labels": len(labels)}
    return {**facts, "changed": changed, "kept": kept}


def imported_lines(found: Mapping[str, Any]) -> list[str]:
    """The lines that `gistmill rate import` prints."""
    of_whom = f"{counted(found['labels'], 'label')} of {found['rater']} in run {found['run']}"
    lines = [f"{of_whom}, new or changed: {found['changed']}"]
    if left := found["rows"] - found["labels"]:
        rows = f"{left} of {found['rows']} rows have no label"
        lines.append(f"{rows}; import the sheet again when they do")
    if found["kept"]:
        lines.append(f"{found['kept']} of these had one before, which is kept")
    return ["\n".join(lines)]


def _sheet_rows(file: str) -> dict[str, dict[str, Any]]:
    """The rows of a sheet by their id: label and comment, None if there is none, and line."""
    found: dict[str, dict[str, Any]] = {}
    for row in read_rows(as_path(file), _ADVICE):
        value = row.sure().value or {}
        if missing := [name for name in ("row", "label") if name not in value]:
            raise UsageError(row.detail(f"no column {' and '.join(missing)}; {_ADVICE}"))
        cells = (str(value.get(name) or "").strip() for name in ("row", "label", "comment"))
        row_id, label, comment = cells
        if row_id in found:
            first = found[row_id]["line"]
            raise UsageError(row.detail(f"row {row_id} is there twice, first in line {first}"))
        if label.casefold() not in ("", *LABELS):
            known = ", ".join(LABELS)
            raise UsageError(row.detail(f"label {label[:80]!r} is none of {known}; fix it"))
        found[row_id] = {"label": label.casefold() or None, "comment": comment or None,
                         "line": row.line}  # fmt: skip
    return found


def _answers(
    connection: Any, run: str, sheet_rows: Mapping[str, Mapping[str, Any]], file: str
) -> dict[str, dict[str, Any]]:
    """The answers that rows of a sheet are about, by row id. Raises UsageError for a row that is no
    answer of the run."""
    connection.execute("set variable sheet_rows = ?", [list(sheet_rows)])
    labelled = filled(_SQL["labelled"], source=answers(connection, None))
    found = query(connection, filled(_SQL["of_rows"], labelled=labelled))
    rows = {row.pop("row"): row for row in found}
    for row_id, row in sheet_rows.items():
        if row_id not in rows:
            raise UsageError(
                f"{file}:{row['line']}: row {row_id[:80]} is no answer of run={run}, as it is now; "
                "name the run of the sheet, or make a new sheet where the run was answered again"
            )
    return rows

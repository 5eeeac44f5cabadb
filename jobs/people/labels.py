"""A sheet of answers for a person to label, who sees neither methods nor verdicts, and the import
of the labels of a filled one."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.cells import counted
from jobs.output.csv_text import csv_text
from jobs.report.chosen import answers
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside
from pipeline.files.place import as_path, exists
from pipeline.store import connect
from pipeline.store.runs.people import add_labels
from pipeline.store.sql.connection import query
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.files import read_rows

_SQL = sql_beside(__file__)
LABELS = ("yes", "partially", "no")
_COLUMNS = tuple("row question references answer label comment".split())  # noqa: SIM905  # one is a stage, too
_ADVICE = "name the sheet that rate sheet has written"
_ROW_ID = re.compile("r[0-9a-f]{15}")
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
    found = list(_labelled(file))
    labels = {row_id: row for row_id, row in found if row["label"]}
    with options.opened() as (folder, connection):
        run = folder.path.name
        of_run = _answers(connection, run, {row_id: row["line"] for row_id, row in found}, file)
        before = {*connection.execute(_OF_PERSON, [f"human:{person}"]).fetchall()}
    if not labels:
        raise UsageError(f"{file}: no row has a label; write {', '.join(LABELS)} into the column")
    blank = [of_run[row_id] for row_id, row in found if not row["label"]]
    kept = len({tuple(row[key] for key in _KEY) for row in blank} & before)
    rows = [
        {**of_run[row_id], "label": row["label"], "comment": row["comment"]}
        for row_id, row in labels.items()
    ]
    changed = add_labels(folder.path, person, rows)
    facts = {"rater": f"human:{person}", "run": run, "rows": len(found), "labels": len(labels)}
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


def _labelled(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a sheet by their id: label (None if there is none), comment, line."""
    path = as_path(file)
    if not exists(path):
        raise UsageError(f"{file}: no such file; {_ADVICE}")
    if path.suffix != ".csv":
        raise UsageError(f"{file}: no .csv file; {_ADVICE}, saved as CSV")
    lines: dict[str, int] = {}
    for row in read_rows(path, _ADVICE):
        row_id, label, comment = _cells(row)
        if first := lines.get(row_id):
            raise UsageError(row.detail(f"row {row_id} is there twice, first in line {first}"))
        lines[row_id] = row.line
        yield row_id, {"label": label, "comment": comment, "line": row.line}


def _cells(row: Row) -> tuple[str, str | None, str | None]:
    value = row.sure().value or {}
    if missing := [name for name in ("row", "label") if name not in value]:
        raise UsageError(
            row.detail(f"no column {' and '.join(missing)}; import what rate sheet has written")
        )
    row_id = str(value["row"] or "").strip()
    if not _ROW_ID.fullmatch(row_id):
        raise UsageError(row.detail(f"row {row_id[:80]!r} is no id of a sheet; put it back"))
    label = str(value["label"] or "").strip().casefold()
    if label and label not in LABELS:
        raise UsageError(row.detail(f"label {label[:80]!r} is none of {', '.join(LABELS)}; fix it"))
    comment = str(value.get("comment") or "").strip()
    return row_id, label or None, comment or None


def _answers(
    connection: Any, run: str, lines: Mapping[str, int], file: str
) -> dict[str, dict[str, Any]]:
    """The answers that rows of a sheet are about, by row id. Raises UsageError for a row that is no
    answer of the run."""
    ids = ", ".join(f"'{row_id}'" for row_id in lines) or "''"
    labelled = filled(_SQL["labelled"], source=answers(connection, None))
    found = query(connection, filled(_SQL["of_rows"], labelled=labelled, ids=ids))
    rows = {row.pop("row"): row for row in found}
    for row_id, line in lines.items():
        if row_id not in rows:
            raise UsageError(
                f"{file}:{line}: row {row_id} is no answer of run={run}, as it is now; name the "
                "run of the sheet, or make a new sheet where the run was answered again"
            )
    return rows

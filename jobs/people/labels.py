"""Import the labels of a filled sheet."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.answers import answers
from jobs.options import ReadOptions
from jobs.people.sheet import LABELLED, LABELS, ROW
from pipeline.errors import UsageError
from pipeline.place import exists, place
from pipeline.store import connect
from pipeline.store.people import add_labels
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name
from stages.corpora.containers import read_rows
from stages.corpora.row import Row

_ADVICE = "name the sheet that rate sheet has written"
_ROW_ID = re.compile("r[0-9a-f]{15}")
_PERSON = re.compile("[a-z0-9][a-z0-9_.-]{0,49}")


@dataclass(frozen=True)
class Imported:
    """What an import found: rows of the sheet, those with a label, labels that were new or changed,
    and how many rows without a label keep that of an earlier import."""

    rater: str
    run: str
    rows: int
    labels: int
    changed: int
    kept: int


def import_sheet(file: str, options: ReadOptions) -> Imported:
    """Add the labels in a sheet, as those of `person=`, to the run. All or none are imported.

    Raises UsageError naming the first line that is wrong.
    """
    person = options.person or ""
    if not _PERSON.fullmatch(person):
        raise UsageError(f"person={person}: write a name of a-z, 0-9 and _.-, such as person=ann")
    found = list(_labelled(file))
    labels = {row_id: row for row_id, row in found if row["label"]}
    run = run_name(options.warehouse, options.run)
    of_run = _answers(options, run, {row_id: row["line"] for row_id, row in found}, file)
    if not labels:
        raise UsageError(f"{file}: no row has a label; write {', '.join(LABELS)} into the column")
    blank = [of_run[row_id] for row_id, row in found if not row["label"]]
    kept = _num_labelled(options, run, person, blank)
    rows = [
        {**of_run[row_id], "label": row["label"], "comment": row["comment"]}
        for row_id, row in labels.items()
    ]
    changed = add_labels(RunFolder(options.warehouse, run).path, person, rows)
    return Imported(f"human:{person}", run, len(found), len(labels), changed, kept)


def _num_labelled(
    options: ReadOptions, run: str, person: str, rows: Sequence[Mapping[str, Any]]
) -> int:
    """How many of the answers the person has labelled before."""
    with connect(options.warehouse, run) as connection:
        of_person = connection.execute(_OF_PERSON, [f"human:{person}"]).fetchall()
    return len({tuple(row[key] for key in _KEY) for row in rows} & {*of_person})


def _labelled(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a sheet by their id: label (null where there is none), comment, line."""
    path = place(file)
    if not exists(path):
        raise UsageError(f"{file}: no such file; {_ADVICE}")
    if path.suffix != ".csv":
        raise UsageError(f"{file}: no .csv file; {_ADVICE}, saved as CSV")
    lines: dict[str, int] = {}
    for row in read_rows(path, _ADVICE):
        row_id, label, comment = _cells(row)
        if row_id in lines:
            first = lines[row_id]
            raise UsageError(row.detail(f"row {row_id} is there twice, first in line {first}"))
        lines[row_id] = row.line
        yield row_id, {"label": label, "comment": comment, "line": row.line}


def _cells(row: Row) -> tuple[str, str | None, str | None]:
    value = row.value
    if value is None:
        raise UsageError(row.detail(row.wrong))
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
    options: ReadOptions, run: str, lines: Mapping[str, int], file: str
) -> dict[str, dict[str, Any]]:
    """The answers that rows of a sheet stand for, by row id.

    Raises UsageError for a row that is no answer of the run.
    """
    ids = ", ".join(f"'{row_id}'" for row_id in lines) or "''"
    with connect(options.warehouse, run) as connection:
        source = answers(connection, None)
        found = query(connection, _OF_ROWS.format(source=source, ids=ids))
    rows = {row.pop("row"): row for row in found}
    for row_id, line in lines.items():
        if row_id not in rows:
            raise UsageError(
                f"{file}:{line}: row {row_id} is no answer of run={run}, as it is now; name the "
                "run of the sheet, or make a new sheet where the run was answered again"
            )
    return rows


_KEY = ("method", "repeat", "document_id", "question_id", "answer_sha")
_OF_PERSON = f"select {', '.join(_KEY)} from people where rater = ?"
_OF_ROWS = f"""
select * from (
  select {ROW}, method, repeat, document_id, question_id, sha256(answer) as answer_sha
  from {{source}} where {LABELLED})
where row in ({{ids}})"""

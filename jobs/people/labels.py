"""Sheets of answers that people label, their import, and agreement with raters and each other."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.print_tables import Part, Table, counted, csv_text
from jobs.report.report import answers
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside
from pipeline.files.storage import as_path
from pipeline.store import connect
from pipeline.store.runs.run_folder import add_labels
from pipeline.store.sql.connection import query
from stages.corpora.reading.files import read_rows

_SQL = sql_beside(__file__)
LABELS = ("yes", "partially", "no")
_COLUMNS = ("row", "question", "references", "answer", "label", "comment")
_ADVICE = "name the sheet that rate sheet has written, as CSV"
_PERSON = re.compile("[a-z0-9][a-z0-9_.-]{0,49}")
_TWO = (LABELS[0], LABELS[-1])
_NOTE = (
    "Of the answers that both labeled; unscored: the rater's verdict could not be read. kappa: "
    "Cohen's, unweighted; weighted: partially is half as far from yes and no as these are from "
    "each other. lr: exact, partial, none as yes, partially, no. A rubric without partially counts "
    "a person's partially as no."
)


def sheet(options: ReadOptions) -> tuple[str, int]:
    """CSV of `n=` answers, of all methods or of the methods whose name begins with `method=`, and
    their number. Each method has the same share, or one more; the order is random by `seed=`."""
    with connect(options.warehouse, options.run) as connection:
        source = answers(connection, options.where, options.method)
        labeled = filled(_SQL["labeled"], source=source)
        size = {"n": str(options.n), "seed": str(options.seed)}
        rows = query(connection, filled(_SQL["drawn"], labeled=labeled, **size))
    if not rows:
        raise UsageError(
            "no answer to label: it needs free-form questions with references, and answers without "
            "a problem; see where=, method=, run="
        )
    shown = [{**row, "references": "\n".join(row["references"])} for row in rows]
    return csv_text(shown, _COLUMNS), len(rows)


def import_sheet(file: str, options: ReadOptions) -> dict[str, Any]:
    """Add the labels in a sheet to the run, as labels by `person=`; imports all or none, and
    returns counts. Raises UsageError naming the first line that is wrong."""
    person = options.person
    if not _PERSON.fullmatch(person):
        raise UsageError(f"person={person}: write a name of a-z, 0-9 and _.-, such as person=ann")
    rows = _sheet_rows(file)
    with options.opened() as (folder, connection):
        run = folder.path.name
        connection.execute("set variable sheet_rows = ?", [list(rows)])
        labeled = filled(_SQL["labeled"], source=answers(connection, None))
        of_rows = query(connection, filled(_SQL["of_rows"], labeled=labeled))
    answer_of = {row.pop("row"): row for row in of_rows}
    for row_id, row in rows.items():
        if row_id not in answer_of:
            raise UsageError(
                f"{file}:{row['line']}: row {row_id[:80]} is no answer of run={run}, as it is now; "
                "name the run of the sheet, or make a new sheet where the run was answered again"
            )
    labels = [{**answer_of[row_id], "label": row["label"], "comment": row["comment"]}
              for row_id, row in rows.items() if row["label"]]  # fmt: skip
    if not labels:
        raise UsageError(f"{file}: no row has a label; write {', '.join(LABELS)} into the column")
    changed = add_labels(folder.path, person, labels)
    return {"rater": f"human:{person}", "run": run, "rows": len(rows), "labels": len(labels),
            "changed": changed}  # fmt: skip


def imported_lines(counts: Mapping[str, Any]) -> list[str]:
    of_whom = f"{counted(counts['labels'], 'label')} of {counts['rater']} in run {counts['run']}"
    return [f"{of_whom}, new or changed: {counts['changed']}; of {counts['rows']} rows"]


def _sheet_rows(file: str) -> dict[str, dict[str, Any]]:
    """By row id: label and comment, None if empty, and line number. Raises UsageError."""
    rows: dict[str, dict[str, Any]] = {}
    for row in read_rows(as_path(file), _ADVICE):
        value = row.sure().value or {}
        if missing := [name for name in ("row", "label") if name not in value]:
            raise UsageError(row.detail(f"no column {' and '.join(missing)}; {_ADVICE}"))
        row_id, label, comment = (
            str(value.get(name) or "").strip() for name in ("row", "label", "comment")
        )
        if row_id in rows:
            first = rows[row_id]["line"]
            raise UsageError(row.detail(f"row {row_id} is there twice, first in line {first}"))
        if label.casefold() not in ("", *LABELS):
            there = ", ".join(LABELS)
            raise UsageError(row.detail(f"label {label[:80]!r} is none of {there}; fix it"))
        labels = {"label": label.casefold() or None, "comment": comment or None}
        rows[row_id] = {**labels, "line": row.line}
    return rows


def agreements(options: ReadOptions) -> dict[str, Any]:
    """The `agreements` of a run's people, the number of their `labels`, and how many of these are
    `outdated`, as the answer has changed since."""
    with connect(options.warehouse, options.run) as connection:
        if not query(connection, "from people limit 1"):
            raise UsageError(
                "the run has no labels of people; make a sheet with gistmill rate sheet, and "
                "import it with gistmill rate import"
            )
        counts = query(connection, filled(_SQL["counts"], labels=_SQL["labels"]))[0]
        rows = query(connection, filled(_SQL["pairs"], labels=_SQL["labels"]))
    groups = groupby(rows, itemgetter("person", "other", "rubric"))  # rows are sorted by these
    return {"agreements": [_agreement(key, [*of]) for key, of in groups], **counts}


def _agreement(key: tuple[Any, ...], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of one person and one rater by one rubric; or of two people, if that is None.
    `confusion[i][j]`: answers that the person gave `labels[i]` and the other `labels[j]`."""
    labels = LABELS if rows[0]["has_partially"] else _TWO
    confusion = {(a, b): 0 for a in labels for b in labels}
    for row in rows:
        if row["theirs"] is not None:
            mine = row["mine"] if row["mine"] in labels else _TWO[1]
            confusion[mine, row["theirs"]] += row["n"]
    n, equal = sum(confusion.values()), sum(confusion[label, label] for label in labels)
    return {
        **dict(zip(("person", "other", "rubric"), key, strict=True)),
        "n": n,
        "unscored": sum(row["n"] for row in rows if row["theirs"] is None),
        "percent": 100 * equal / n if n else None,
        "kappa": kappa(confusion),
        "weighted_kappa": kappa(confusion, labels),
        "labels": labels,
        "confusion": [[confusion[a, b] for b in labels] for a in labels],
    }


def agreement_parts(agreed: Mapping[str, Any]) -> list[Part]:
    labels, outdated = (counted(agreed[name], "label") for name in ("labels", "outdated"))
    if not agreed["agreements"]:
        return [f"{labels}, none of an answer that a rater or another person labeled"]
    rows, matrices = [], list[Part]()
    for of in agreed["agreements"]:
        kappas = [None if of[name] is None else f"{of[name]:.2f}"
                  for name in ("kappa", "weighted_kappa")]  # fmt: skip
        rows.append({
            "person": of["person"], "other": of["other"], "rubric": of["rubric"] or "people",
            "n": of["n"], "agreement %": of["percent"], "kappa": kappas[0], "weighted": kappas[1],
            "unscored": of["unscored"],
        })  # fmt: skip
        other = f"{of['other']}, {of['rubric']}" if of["rubric"] else of["other"]
        matrices.append(f"{of['person']} (rows), {other} (columns), n = {of['n']}:")
        cells = [
            {"": label, **dict(zip(of["labels"], row, strict=True)), "all": sum(row)}
            for label, row in zip(of["labels"], of["confusion"], strict=True)
        ]
        matrices.append(Table(cells, keeps_empty=True))
    table = Table(rows, left=("other", "rubric"))
    left_out = f"Left out: {outdated} of answers that changed since."
    return [table, _NOTE, *([left_out] if agreed["outdated"] else []), *matrices]


def kappa(
    confusion: Mapping[tuple[str, str], int], order: Sequence[str] | None = None
) -> float | None:
    """Cohen's kappa: 1 - disagreement / the disagreement expected by chance; None if that is 0.
    Unweighted (1960), or with labels in an `order` by weights linear in the distance (1968)."""

    def distance(a: str, b: str) -> int:
        return abs(order.index(a) - order.index(b)) if order else int(a != b)

    ours, theirs = Counter[str](), Counter[str]()
    for (a, b), n in confusion.items():
        ours[a] += n
        theirs[b] += n
    by_chance = sum(distance(a, b) * ours[a] * theirs[b] for a in ours for b in theirs)
    observed = sum(distance(a, b) * n for (a, b), n in confusion.items()) * ours.total()
    return (by_chance - observed) / by_chance if by_chance else None

"""Agreement of people with raters, and with each other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.cells import Part, Table, counted
from jobs.people.labels import LABELS
from jobs.report.answer_rows import answers
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store import connect
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_ANSWER = "method, repeat, document_id, question_id"
_TWO = (LABELS[0], LABELS[-1])
_NOTE = (
    "Of the answers that both labelled; unscored: the rater's verdict could not be read. kappa: "
    "Cohen's, unweighted; weighted: partially is half as far from yes and no as these are from "
    "each other. lr: exact, partial, none as yes, partially, no. A rubric without partially counts "
    "a person's partially as no."
)


def agreements(options: ReadOptions) -> dict[str, Any]:
    """The `agreements` of a run's people, on answers that `method=` and `where=` select, and the
    number of `labels` that these have; `outdated` of them are of answers that have changed since.

    Raises UsageError if the run has no labels.
    """
    with connect(options.warehouse, options.run) as connection:
        if not query(connection, "from people limit 1"):
            raise UsageError(
                "the run has no labels of people; make a sheet with gistmill rate sheet, and "
                "import it with gistmill rate import"
            )
        source = answers(connection, options.where, options.method)
        is_all = options.where is None and options.method is None
        chosen = "" if is_all else f"semi join {source} using ({_ANSWER})"
        counts = query(connection, filled(_SQL["counts"], labels=_SQL["labels"], chosen=chosen))[0]
        rows = query(connection, filled(_SQL["pairs"], labels=_SQL["labels"], source=source))
    groups = groupby(rows, itemgetter("person", "other", "rubric"))  # by which they are sorted
    found = [_agreement(key, [*of]) for key, of in groups]
    return {"agreements": found, "labels": counts["labels"], "outdated": counts["outdated"]}


def _agreement(key: tuple[Any, ...], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The agreement of one person and one rater by one rubric; or of two people, if that is None.

    `confusion[i][j]`: answers that the person gave `labels[i]` and the other `labels[j]`.
    """
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


def _shown(kappa: float | None) -> str | None:
    return None if kappa is None else f"{kappa:.2f}"


def parts_of(found: Mapping[str, Any]) -> list[Part]:
    """The output of `gistmill rate agreement`."""
    labels, outdated = (counted(found[name], "label") for name in ("labels", "outdated"))
    if not found["agreements"]:
        return [f"{labels}, none of an answer that a rater or another person labelled"]
    lines = [
        {
            "person": one["person"],
            "other": one["other"],
            "rubric": one["rubric"] or "people",
            "n": one["n"],
            "agreement %": one["percent"],
            "kappa": _shown(one["kappa"]),
            "weighted": _shown(one["weighted_kappa"]),
            "unscored": one["unscored"],
        }
        for one in found["agreements"]
    ]
    parts: list[Part] = [Table(lines, left=("other", "rubric"), num_keys=3), _NOTE]
    if found["outdated"]:
        parts.append(f"Left out: {outdated} of answers that changed since.")
    for one in found["agreements"]:
        other = f"{one['other']}, {one['rubric']}" if one["rubric"] else one["other"]
        parts.append(f"{one['person']} (rows), {other} (columns), n = {one['n']}:")
        matrix = [
            {"": label, **dict(zip(one["labels"], row, strict=True)), "all": sum(row)}
            for label, row in zip(one["labels"], one["confusion"], strict=True)
        ]
        parts.append(Table(matrix, keeps_empty=True))
    return parts


def kappa(
    confusion: Mapping[tuple[str, str], int], order: Sequence[str] | None = None
) -> float | None:
    """Cohen's kappa: 1 - disagreement / that of two raters with the same shares of labels by
    chance; None if the latter is 0. Unweighted (1960), or with labels in an `order` by weights that
    are linear in the distance of two of them (1968)."""

    def distance(a: str, b: str) -> int:
        return abs(order.index(a) - order.index(b)) if order else int(a != b)

    ours, theirs = Counter[str](), Counter[str]()
    for (a, b), n in confusion.items():
        ours[a] += n
        theirs[b] += n
    by_chance = sum(distance(a, b) * ours[a] * theirs[b] for a in ours for b in theirs)
    found = sum(distance(a, b) * n for (a, b), n in confusion.items()) * ours.total()
    return (by_chance - found) / by_chance if by_chance else None

"""How people agree with raters, and with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.answers import answers
from jobs.cells import Part, Table, counted
from jobs.options import ReadOptions
from jobs.people.kappa import kappa, percent
from jobs.people.sheet import LABELS
from pipeline.errors import UsageError
from pipeline.store import connect
from pipeline.store.views import query

_TWO = (LABELS[0], LABELS[-1])
_NOTE = (
    "Of the answers that both labelled; unscored: the rater's verdict could not be read. kappa: "
    "Cohen's, unweighted. lr: exact, partial, none as yes, partially, no. A rubric without "
    "partially counts a person's partially as no."
)


@dataclass(frozen=True)
class Agreement:
    """Of one person and one rater by one rubric; or of two people, where `rubric` is null.

    `confusion[i][j]`: answers that the person gave `labels[i]` and the other `labels[j]`.
    """

    person: str
    other: str
    rubric: str | None
    n: int
    unscored: int
    percent: float | None
    kappa: float | None
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Found:
    """The agreements; how many `labels` the chosen answers have, and how many of these are
    `outdated`, of answers that have changed since."""

    agreements: tuple[Agreement, ...]
    labels: int
    outdated: int


def agreements(options: ReadOptions) -> Found:
    """The agreements of a run's people, of answers that `method=` and `where=` leave.

    Raises UsageError where the run has no labels.
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
        counts = query(connection, _COUNTS.format(chosen=chosen))[0]
        rows = query(connection, _PAIRS.format(source=source))
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["person"], row["other"], row["rubric"]), []).append(row)
    found = tuple(_agreement(key, of) for key, of in groups.items())
    return Found(found, counts["labels"], counts["outdated"])


def _agreement(key: tuple[Any, ...], rows: Sequence[Mapping[str, Any]]) -> Agreement:
    labels = LABELS if rows[0]["has_partially"] else _TWO
    confusion = {(a, b): 0 for a in labels for b in labels}
    for row in rows:
        if row["theirs"] is not None:
            mine = row["mine"] if row["mine"] in labels else _TWO[1]
            confusion[mine, row["theirs"]] += row["n"]
    person, other, rubric = key
    return Agreement(
        person=person,
        other=other,
        rubric=rubric,
        n=sum(confusion.values()),
        unscored=sum(row["n"] for row in rows if row["theirs"] is None),
        percent=percent(confusion),
        kappa=kappa(confusion),
        labels=labels,
        confusion=tuple(tuple(confusion[a, b] for b in labels) for a in labels),
    )


def parts_of(found: Found) -> list[Part]:
    """What `gistmill rate agreement` prints."""
    if not found.agreements:
        return [
            f"{counted(found.labels, 'label')}, none of an answer that a rater or another person "
            "labelled"
        ]
    lines = [_line(one) for one in found.agreements]
    parts: list[Part] = [Table(lines, left=("other", "rubric"), num_keys=3), _NOTE]
    if found.outdated:
        parts.append(f"Left out: {counted(found.outdated, 'label')} of answers that changed since.")
    for one in found.agreements:
        rubric = f", {one.rubric}" if one.rubric else ""
        parts.append(f"{one.person} (rows), {one.other}{rubric} (columns), n = {one.n}:")
        matrix = [
            {"": label, **dict(zip(one.labels, row, strict=True)), "all": sum(row)}
            for label, row in zip(one.labels, one.confusion, strict=True)
        ]
        parts.append(Table(matrix, keeps_empty=True))
    return parts


def _line(one: Agreement) -> dict[str, Any]:
    return {
        "person": one.person,
        "other": one.other,
        "rubric": one.rubric or "people",
        "n": one.n,
        "agreement %": one.percent,
        "kappa": None if one.kappa is None else f"{one.kappa:.2f}",
        "unscored": one.unscored,
    }


_ANSWER = "method, repeat, document_id, question_id"
_CURRENT = f"""
  select p.*, a.problem is null and sha256(a.answer) is not distinct from p.answer_sha as is_current
  from people p left join predictions a using ({_ANSWER})"""
_COUNTS = f"""
select count(*) as labels, count(*) filter (not is_current) as outdated
from ({_CURRENT}) {{chosen}}"""
_PAIRS = f"""
with current as (
  from ({_CURRENT}) semi join {{source}} using ({_ANSWER})
  where is_current),
pairs as (
  select c.rater as person, v.rater as other, rubric, has_partially, c.label as mine,
    v.label as theirs
  from current c join verdicts v using ({_ANSWER})
  union all by name
  select c.rater as person, o.rater as other, null as rubric, true as has_partially,
    c.label as mine, o.label as theirs
  from current c join current o using ({_ANSWER})
  where c.rater < o.rater)
select *, count(*) as n from pairs group by all
order by person, other, rubric nulls first, mine, theirs"""

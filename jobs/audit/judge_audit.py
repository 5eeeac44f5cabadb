"""Counts raters' mistakes on answers whose worth is known or that people have labelled, and
corrects the means of their verdicts; the parts of a report about both."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from statistics import NormalDist
from typing import Any, NamedTuple

from jobs.output.cells import Part, Table, counted
from jobs.statistics.means import LEAST_DOCUMENTS
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)
PERSON = "human:"  # prefix of people's names among raters
_LEAST = 10  # answers of a kind that counts in means
_Z = NormalDist().inv_cdf(0.975)
Limits = tuple[float, float]
Share = tuple[float, float]
"""A share, 0 to 1, and the size of the sample that it is of."""
_BY_RUN = "Audit of {rater} by known answers to {questions}, {source}."
_BY_PERSON = "Audit of {rater} by the labels of {source}, of answers to {questions}."
_RATES = (
    "Of each kind, the share of mistakes in % [95% interval]: wrong answers accepted, right ones "
    "rejected."
)
_INCOMPLETE = (
    "INCOMPLETE: {} inputs of the audit are not done, so that no mean is corrected; run the same "
    "gistmill rate audit again."
)
_WEIGHTS = (
    "mean: over kinds, each of the same weight, without those marked *, which systems do not give, "
    "and those of fewer than 10 answers where others have more."
)
_CORRECTED = (
    "Means corrected for these mistakes (Rogan and Gladen 1978) [95% interval: Lang and Reiczigel "
    "2014, over the documents of the run and the questions of the audit], beside the raw ones. "
    "Answers with a problem, which no rater sees, stay wrong."
)
_CUT = (
    "cut: limited to 0 or 100; the rater accepts fewer of these answers than of those known to be "
    "wrong, or more than of those known to be right: by chance, or as they are of other kinds."
)
_FEWER = f"n/a: no interval over fewer than {LEAST_DOCUMENTS} documents."


class Verdict(NamedTuple):
    """A rater's verdict on an answer that is known to be right or wrong; `kind`: of known answer,
    or the label that a person gave it."""

    measure: str
    kind: str
    is_right: bool
    is_typical: bool
    question_id: str
    is_accepted: bool


@dataclass(frozen=True)
class Rate:
    """The share of mistakes, 0-100, on the answers of one kind, with its 95% interval: false
    acceptance of wrong ones, false rejection of right ones. `is_typical`: it counts in the
    means."""

    measure: str
    kind: str
    is_right: bool
    is_typical: bool
    n: int
    mistakes: float
    low: float
    high: float


@dataclass(frozen=True)
class Corrected:
    """A method's mean by the rater's verdicts, and corrected, 0-100; `by`: the group of questions.

    `is_cut`: the corrected mean was below 0 or above 100, as the rater accepts a smaller share than
    of the known wrong answers, or a larger one than of the known right answers.
    """

    method: str
    by: str | None
    measure: str
    n: int
    raw: float
    corrected: float
    low: float | None
    high: float | None
    is_cut: bool


@dataclass(frozen=True)
class JudgeAudit:
    """The audit of one rater by one source: a run of known answers, or a person.

    `num_questions`: with such answers. `means`: the mean rates of right and of wrong answers, over
    kinds of equal weight; for a person, over answers. `unusable`: the measures that cannot be
    corrected, each with the reason. `not_done`: unfinished inputs of the run of known answers; with
    any no mean is corrected.
    """

    rater: str
    source: str
    num_questions: int
    rates: tuple[Rate, ...]
    means: tuple[Rate, ...]
    corrected: tuple[Corrected, ...]
    unusable: tuple[tuple[str, str], ...]
    not_done: int = 0


def judge_audits(
    connection: Any, folder: RunFolder, columns: Sequence[Column], rater: str | None
) -> tuple[JudgeAudit, ...]:
    """The audits of all raters if the run is an audit; else of `rater`, by the run's audit and by
    people. `connection` shows the run and has the table `chosen` of the report's questions."""
    judged = [c for c in columns if c.is_judged and not c.mean_of_means]
    measures = ", ".join(text(column.measure) for column in judged) or "null"
    if known := folder.report_facts().get("known_answers"):
        return tuple(_of_run(connection, folder.path.name, known, measures, judged))
    if rater is None:
        return ()
    rows = query(connection, filled(_SQL["judged"], rater=text(rater), measures=measures))
    audit = RunFolder(folder.warehouse, f"{folder.path.name}-audit")
    found = list(_of_people(connection, judged, measures, rater, rows))
    if audit.config() and (known := audit.report_facts().get("known_answers")):
        with connect(folder.warehouse, audit.path.name) as other:
            (left,) = query(other, _SQL["not_done"])
            # A part of the known answers is not enough to correct means.
            of_run = _of_run(other, audit.path.name, known, measures, judged,
                             () if left["not_done"] else rows)  # fmt: skip
            own = (replace(one, **left) for one in of_run if one.rater == rater)
            found = [*own, *found]
    return tuple(found)


def _of_run(
    connection: Any,
    run: str,
    known: Mapping[str, Mapping[str, Any]],
    measures: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]] = (),
) -> Iterator[JudgeAudit]:
    (sampled,) = query(connection, _SQL["sampled"])
    found = query(connection, filled(_SQL["verdicts"], measures=measures))
    for rater in sorted({row["rater"] for row in found if row["method"] in known}):
        verdicts = [
            Verdict(row["measure"], **of_kind, question_id=row["question_id"],
                    is_accepted=row["is_accepted"])
            for method, of_kind in known.items()
            for row in found
            if row["rater"] == rater and row["method"] == method
        ]  # fmt: skip
        yield _audit(rater, f"run {run}", sampled["n"], verdicts, columns, rows)


def _of_people(
    connection: Any,
    columns: Sequence[Column],
    measures: str,
    rater: str,
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[JudgeAudit]:
    """Partially right answers count as right for the measures that count them."""
    right = {column.measure: column.right_labels for column in columns}
    labelled = query(connection, filled(_SQL["labelled"], rater=text(rater), measures=measures))
    for person, own in groupby(labelled, itemgetter("person")):
        found = [
            Verdict(row["measure"], row["label"], row["label"] in right[row["measure"]], True,
                    row["question_id"], row["is_accepted"])
            for row in own
        ]  # fmt: skip
        num_questions = len({verdict.question_id for verdict in found})
        yield _audit(rater, person, num_questions, found, columns, rows)


def _audit(
    rater: str,
    source: str,
    num_questions: int,
    verdicts: Sequence[Verdict],
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
) -> JudgeAudit:
    by_kind: dict[tuple[str, str, bool], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_kind[verdict.measure, verdict.kind, verdict.is_right].append(verdict)
    rates = [_rate(of[0], of[0].kind, _mistakes(of), len(of)) for of in by_kind.values()]
    means, corrected, unusable = list[Rate](), list[Corrected](), list[tuple[str, str]]()
    for column in columns:
        own = [v for v in verdicts if v.measure == column.measure and v.is_typical]
        if source.startswith(PERSON):  # answers of the run itself
            own = [verdict._replace(kind=source) for verdict in own]
        of_worth = [
            mean_rate([v for v in own if v.is_right == is_right]) for is_right in (True, False)
        ]
        means += [rate for rate in of_worth if rate]
        if not own:
            continue
        if why := _why_unusable(*of_worth):
            unusable.append((column.measure, f"{column.heading} by {source}: {why}"))
        elif of_worth[0] and of_worth[1]:
            mine = [row for row in rows if row["measure"] == column.measure]
            corrected += _corrected(mine, of_worth[0], of_worth[1])
    return JudgeAudit(rater, source, num_questions, tuple(rates), tuple(means), tuple(corrected),
                      tuple(unusable))  # fmt: skip


def _mistakes(verdicts: Sequence[Verdict]) -> float:
    return sum(v.is_accepted != v.is_right for v in verdicts) / len(verdicts)


def _rate(like: Verdict, kind: str, share: float, n: int) -> Rate:
    percent = (100 * value for value in (share, *exact_interval(share, n)))
    return Rate(like.measure, kind, like.is_right, like.is_typical, n, *percent)


def mean_rate(verdicts: Sequence[Verdict]) -> Rate | None:
    """The mean rate over kinds of the same worth; kinds with fewer than 10 answers are left out if
    others have more.

    Its n is that of a share with the same variance: of K kinds of n_k answers K^2 / sum(1 / n_k),
    and at most the number of questions, as answers to one question are alike.
    """
    if not verdicts:
        return None
    kinds: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        kinds[verdict.kind].append(verdict)
    found = [own for own in kinds.values() if len(own) >= _LEAST] or [*kinds.values()]
    share = sum(100 * _mistakes(own) for own in found) / len(found) / 100
    n = len(found) ** 2 / sum(1 / len(own) for own in found)
    num_questions = len({verdict.question_id for own in found for verdict in own})
    return _rate(verdicts[0], "mean", share, min(round(n), num_questions))


def _why_unusable(right: Rate | None, wrong: Rate | None) -> str | None:
    """The reason, and advice; None if means can be corrected by these rates."""
    if not right or not wrong:
        missing = "wrong" if right else "right"
        return f"no answer is known to be {missing}, so no mean can be corrected; add some that are"
    sensitivity, specificity = 100 - right.mistakes, 100 - wrong.mistakes
    if sensitivity + specificity > 100:
        return None
    what = f"accepts {sensitivity:.1f}% of right answers and {wrong.mistakes:.1f}% of wrong ones"
    if {right.mistakes, wrong.mistakes} == {0.0, 100.0}:
        what = f"{'rejects' if right.mistakes else 'accepts'} every answer"
    return (
        f"the rater {what}, so its verdicts say nothing and no mean can be corrected; take another "
        "rater model, or other prompts (family=)"
    )


def _corrected(rows: Iterable[Mapping[str, Any]], right: Rate, wrong: Rate) -> Iterator[Corrected]:
    """A row is a document. Answers with a problem, which no rater saw, stay wrong."""
    sensitivity, specificity = 1 - right.mistakes / 100, 1 - wrong.mistakes / 100
    key = itemgetter("method", "by_value", "measure")
    for (method, by, measure), of_documents in groupby(rows, key):
        own = list(of_documents)
        n, seen = sum(row["n"] for row in own), sum(row["answered"] for row in own)
        if not seen:
            continue
        rated = [row for row in own if row["answered"]]
        accepted, counts = [r["accepted"] for r in rated], [r["answered"] for r in rated]
        observed, share = sum(accepted) / seen, 100 * seen / n
        limits: tuple[float | None, float | None] = (None, None)
        if size := effective_size(accepted, counts):
            low, high = corrected_interval(
                (observed, size), (sensitivity, right.n), (specificity, wrong.n)
            )
            limits = share * low, share * high
        found = share * rogan_gladen(observed, sensitivity, specificity)
        is_cut = not 1 - specificity <= observed <= sensitivity
        yield Corrected(method, by, measure, n, share * observed, found, *limits, is_cut)


def exact_interval(share: float, n: int) -> Limits:
    """The 95% interval of Clopper and Pearson (1934) of a share of `n`, both 0 to 1.

    The share may be a mean of shares: share x n need not be a whole number.
    """
    from scipy.stats import beta  # imported here, as it takes seconds

    k = share * n
    low = float(beta.ppf(0.025, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
    return low, high


def rogan_gladen(observed: float, sensitivity: float, specificity: float) -> float:
    """The true share of right answers, 0 to 1, if a judge accepts the share `observed` (Rogan and
    Gladen 1978). Sensitivity + specificity must be above 1."""
    found = (observed + specificity - 1) / (sensitivity + specificity - 1)
    return min(1.0, max(0.0, found))


def corrected_interval(observed: Share, sensitivity: Share, specificity: Share) -> Limits:
    """The 95% interval of `rogan_gladen`, with the uncertainty of all three samples.

    Lang and Reiczigel (2014, Preventive Veterinary Medicine 113, 13-22): Agresti and Coull's shares
    in the formula of Rogan and Gladen, its standard error, and a shift towards the middle.
    """
    share, n = _added(*observed, _Z**2)
    se, n_se = _added(*sensitivity, 2)
    sp, n_sp = _added(*specificity, 2)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    found = (share + sp - 1) / (se + sp - 1)
    variance = share * (1 - share) / n + found**2 * of_se + (1 - found) ** 2 * of_sp
    middle = found + 2 * _Z**2 * (found * of_se - (1 - found) * of_sp)
    half = _Z * math.sqrt(variance) / abs(se + sp - 1)
    return max(0.0, min(1.0, middle - half)), min(1.0, max(0.0, middle + half))


def _added(share: float, n: float, more: float) -> tuple[float, float]:
    """Add `more` answers, half of them accepted, to a sample; returns its share and size."""
    return (share * n + more / 2) / (n + more), n + more


def effective_size(accepted: Sequence[float], counts: Sequence[int]) -> float | None:
    """The number of independent answers whose accepted share would vary as much as this one does,
    if documents are drawn (Kish 1965); at most the number of answers.

    `accepted` and `counts`: of each document. None below 10 documents, as for other intervals.
    """
    if len(counts) < LEAST_DOCUMENTS:
        return None
    n = sum(counts)
    share = sum(accepted) / n
    squares = sum((a - share * m) ** 2 for a, m in zip(accepted, counts, strict=True))
    variance = squares / n**2 * len(counts) / (len(counts) - 1)
    return min(n, share * (1 - share) / variance) if variance else n


def audit_parts(audits: Sequence[JudgeAudit], columns: Sequence[Column]) -> Iterator[Part]:
    headings = {column.measure: column.heading for column in columns}
    for audit in audits:
        rates = [rate for rate in (*audit.rates, *audit.means) if rate.measure in headings]
        if not rates:  # the report has other columns
            continue
        is_by_person = audit.source.startswith(PERSON)
        how = _BY_PERSON if is_by_person else _BY_RUN
        questions = counted(audit.num_questions, "question")
        yield f"{how.format(rater=audit.rater, source=audit.source, questions=questions)} {_RATES}"
        yield _rates_table(rates, headings)
        if audit.not_done:
            yield _INCOMPLETE.format(audit.not_done)
        if audit.means and not is_by_person:
            yield _WEIGHTS
        yield from (line for measure, line in audit.unusable if measure in headings)
        corrected = [one for one in audit.corrected if one.measure in headings]
        if corrected:
            yield _CORRECTED
            yield _corrected_table(corrected, headings)
        if any(one.is_cut for one in corrected):
            yield _CUT
        if any(one.low is None for one in corrected):
            yield _FEWER


def _rates_table(rates: Sequence[Rate], headings: Mapping[str, str]) -> Table:
    by_kind: dict[tuple[str, bool, bool], dict[str, Rate]] = {}
    for rate in rates:
        key = (rate.kind, rate.is_right, rate.is_typical)
        by_kind.setdefault(key, {})[rate.measure] = rate
    measures = [name for name in headings if any(rate.measure == name for rate in rates)]
    rows = [
        {
            "kind": kind if is_typical else f"{kind} *",
            "worth": "right" if is_right else "wrong",
            "mistake": f"false {'rejection' if is_right else 'acceptance'}",
            "n": max(rate.n for rate in own.values()),
            **{headings[name]: _cell(own.get(name)) for name in measures},
        }
        for (kind, is_right, is_typical), own in by_kind.items()
    ]
    return Table(rows, left=("worth", "mistake"), num_keys=3)


def _cell(rate: Rate | None) -> str | None:
    return f"{rate.mistakes:.1f} [{rate.low:.1f}, {rate.high:.1f}]" if rate else None


def _corrected_table(corrected: Sequence[Corrected], headings: Mapping[str, str]) -> Table:
    has_groups = any(one.by is not None for one in corrected)
    rows = []
    for one in corrected:
        limits = "n/a" if one.low is None else f"{one.low:.1f}, {one.high:.1f}"
        rows.append({
            "method": one.method,
            **({"by": one.by} if has_groups else {}),
            "measure": headings[one.measure],
            "n": one.n,
            "raw": one.raw,
            "corrected": f"{one.corrected:.1f} [{limits}]{' cut' if one.is_cut else ''}",
        })  # fmt: skip
    return Table(rows, left=("by", "measure"), num_keys=2 + has_groups)

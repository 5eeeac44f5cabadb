"""Counts raters' mistakes on answers whose worth is known or that people have labeled, and
corrects the means of their verdicts; the parts of a report about both."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import NormalDist
from typing import Any, NamedTuple

from jobs.output.print_tables import Part, Table, counted
from jobs.statistics.statistics import LEAST_DOCUMENTS
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
Share = tuple[float, float]  # 0 to 1, and the size of the sample
DocumentRow = Mapping[str, Any]  # of the SQL `judged`: one document's answers by one method
_BY_RUN = "Audit of {rater} by known answers to {questions}, {source}."
_BY_PERSON = "Audit of {rater} by the labels of {source}, of answers to {questions}."
_RATES = (
    "Of each kind, the share of mistakes in % [95% interval]: wrong answers accepted, right ones "
    "rejected."
)
_WEIGHTS = (
    "mean: over kinds, each of the same weight, without those marked *, which systems do not give, "
    "and those of fewer than 10 answers where others have more."
)
_CORRECTED = (
    "Means corrected for these mistakes (Rogan and Gladen 1978) [95% interval: Lang and Reiczigel "
    "2014, over the documents of the run and the questions of the audit], beside the raw ones. "
    "Answers with a problem, which no rater sees, stay wrong. cut: limited to 0 or 100. n/a: fewer "
    f"than {LEAST_DOCUMENTS} documents."
)


class AuditedVerdict(NamedTuple):
    """A rater's verdict on an answer that is known to be right or wrong. `kind`: the kind of known
    answer, or the label that a person gave it."""

    measure: str
    kind: str
    is_right: bool
    is_typical: bool
    question_id: str
    is_accepted: bool


@dataclass(frozen=True)
class Rate:
    """The share of mistakes, 0-100, on the answers of one kind: false acceptance of wrong ones,
    false rejection of right ones. `is_typical`: it counts in the means."""

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
    """A method's mean by the rater's verdicts, and corrected, 0-100; `is_cut`: that was below 0 or
    above 100."""

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
    """The audit of one rater by one source: a run of known answers, or a person. `means`: the mean
    rates of right and of wrong answers, over kinds of equal weight; for a person, over answers.
    `unusable`: measures that cannot be corrected, and why."""

    rater: str
    source: str
    num_questions: int
    rates: tuple[Rate, ...]
    means: tuple[Rate, ...]
    corrected: tuple[Corrected, ...]
    unusable: tuple[tuple[str, str], ...]


def judge_audits(
    connection: Any, folder: RunFolder, columns: Sequence[Column], rater: str | None
) -> tuple[JudgeAudit, ...]:
    """The audits of all raters if the run is an audit; else of `rater`, by the run's audit and by
    people. `connection` shows the run and has the table `chosen` of the report's questions."""
    judged = [c for c in columns if c.is_judged and not c.mean_of_means]
    if kinds := folder.report_facts().get("known_answers"):
        return tuple(_of_run(connection, folder.path.name, kinds, judged))
    if rater is None:
        return ()
    judged_sql = filled(_SQL["judged"], rater=text(rater), measures=_measures(judged))
    rows = query(connection, judged_sql)
    audits = list(_of_people(connection, judged, rater, rows))
    audit = RunFolder(folder.warehouse, f"{folder.path.name}-audit")
    if audit.config() and (kinds := audit.report_facts().get("known_answers")):
        with connect(folder.warehouse, audit.path.name) as other:
            # A part of the known answers is not enough to correct means.
            if not query(other, "from planned_done_rows where not_done limit 1"):
                audits = [*_of_run(other, audit.path.name, kinds, judged, rows, rater), *audits]
    return tuple(audits)


def _measures(columns: Sequence[Column]) -> str:
    return ", ".join(text(column.measure) for column in columns) or "null"


def _of_run(
    connection: Any,
    run: str,
    kinds: Mapping[str, Mapping[str, Any]],
    columns: Sequence[Column],
    rows: Sequence[DocumentRow] = (),
    rater: str | None = None,
) -> Iterator[JudgeAudit]:
    """By the verdicts on known answers, of `rater` or all raters. `kinds` has the kind of the
    answers of each method."""
    by_rater: dict[str, list[AuditedVerdict]] = defaultdict(list)
    verdicts = query(connection, filled(_SQL["verdicts"], measures=_measures(columns)))
    for method, kind in kinds.items():
        for row in (row for row in verdicts if row["method"] == method):
            by_rater[row["rater"]].append(AuditedVerdict(
                row["measure"], **kind, question_id=row["question_id"],
                is_accepted=row["is_accepted"],
            ))  # fmt: skip
    (sampled,) = query(connection, _SQL["sampled"])
    for name, of_rater in sorted(by_rater.items()):
        if rater in (None, name):
            yield _audit(name, f"run {run}", sampled["n"], of_rater, columns, rows)


def _of_people(
    connection: Any, columns: Sequence[Column], rater: str, rows: Sequence[DocumentRow]
) -> Iterator[JudgeAudit]:
    """Partially right answers count as right for the measures that count them."""
    right = {column.measure: column.right_labels for column in columns}
    labeled = filled(_SQL["labeled"], rater=text(rater), measures=_measures(columns))
    for person, of_person in groupby(query(connection, labeled), itemgetter("person")):
        verdicts = [
            AuditedVerdict(
                row["measure"], row["label"], row["label"] in right[row["measure"]], True,
                row["question_id"], row["is_accepted"],
            )
            for row in of_person
        ]  # fmt: skip
        num_questions = len({verdict.question_id for verdict in verdicts})
        yield _audit(rater, person, num_questions, verdicts, columns, rows)


def _audit(
    rater: str,
    source: str,
    num_questions: int,
    verdicts: Sequence[AuditedVerdict],
    columns: Sequence[Column],
    rows: Sequence[DocumentRow],
) -> JudgeAudit:
    by_kind: dict[tuple[str, str, bool], list[AuditedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        by_kind[verdict.measure, verdict.kind, verdict.is_right].append(verdict)
    rates = [_rate(of[0], of[0].kind, _mistakes(of), len(of)) for of in by_kind.values()]
    means, corrected, unusable = list[Rate](), list[Corrected](), list[tuple[str, str]]()
    for column in columns:
        typical = [v for v in verdicts if v.measure == column.measure and v.is_typical]
        if not typical:
            continue
        if source.startswith(PERSON):  # answers of the run itself
            typical = [verdict._replace(kind=source) for verdict in typical]
        right, wrong = (
            mean_rate([v for v in typical if v.is_right == is_right]) for is_right in (True, False)
        )
        means += [rate for rate in (right, wrong) if rate]
        if why := _why_unusable(right, wrong):
            unusable.append((column.measure, f"{column.heading} by {source}: {why}"))
        elif right and wrong:
            of_column = [row for row in rows if row["measure"] == column.measure]
            corrected += _corrected(of_column, right, wrong)
    return JudgeAudit(rater, source, num_questions, tuple(rates), tuple(means), tuple(corrected),
                      tuple(unusable))  # fmt: skip


def _mistakes(verdicts: Sequence[AuditedVerdict]) -> float:
    return sum(v.is_accepted != v.is_right for v in verdicts) / len(verdicts)


def _rate(like: AuditedVerdict, kind: str, share: float, n: int) -> Rate:
    percent = (100 * value for value in (share, *exact_interval(share, n)))
    return Rate(like.measure, kind, like.is_right, like.is_typical, n, *percent)


def mean_rate(verdicts: Sequence[AuditedVerdict]) -> Rate | None:
    """The mean rate over kinds of the same worth; kinds with fewer than 10 answers are left out if
    others have more. Its n is the size of a sample whose share has the same variance: of K kinds of
    n_k answers K^2 / sum(1 / n_k), and at most the number of questions, as answers to one question
    are alike."""
    if not verdicts:
        return None
    kinds: dict[str, list[AuditedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        kinds[verdict.kind].append(verdict)
    counting = [of for of in kinds.values() if len(of) >= _LEAST] or [*kinds.values()]
    share = sum(100 * _mistakes(of) for of in counting) / len(counting) / 100
    n = len(counting) ** 2 / sum(1 / len(of) for of in counting)
    num_questions = len({verdict.question_id for of in counting for verdict in of})
    return _rate(verdicts[0], "mean", share, min(round(n), num_questions))


def _why_unusable(right: Rate | None, wrong: Rate | None) -> str | None:
    """The reason, and advice; None if means can be corrected by these rates."""
    if not right or not wrong:
        missing = "wrong" if right else "right"
        return f"no answer is known to be {missing}, so no mean can be corrected; add some that are"
    sensitivity, specificity = 100 - right.mistakes, 100 - wrong.mistakes
    if sensitivity + specificity > 100:
        return None
    return (
        f"the rater accepts {sensitivity:.1f}% of right answers and {wrong.mistakes:.1f}% of wrong "
        "ones, so no mean can be corrected; take another rater model, or other prompts (family=)"
    )


def _corrected(rows: Iterable[DocumentRow], right: Rate, wrong: Rate) -> Iterator[Corrected]:
    """By method, group and measure. Answers with a problem, which no rater saw, stay wrong."""
    sensitivity, specificity = 1 - right.mistakes / 100, 1 - wrong.mistakes / 100
    key = itemgetter("method", "by_value", "measure")
    for (method, by, measure), group in groupby(rows, key):
        documents = list(group)
        rated = [row for row in documents if row["answered"]]
        if not rated:
            continue
        n = sum(row["n"] for row in documents)
        accepted, counts = [r["accepted"] for r in rated], [r["answered"] for r in rated]
        observed, share = sum(accepted) / sum(counts), 100 * sum(counts) / n
        limits: tuple[float | None, float | None] = (None, None)
        if size := effective_size(accepted, counts):
            low, high = corrected_interval(
                (observed, size), (sensitivity, right.n), (specificity, wrong.n)
            )
            limits = share * low, share * high
        mean = share * rogan_gladen(observed, sensitivity, specificity)
        is_cut = not 1 - specificity <= observed <= sensitivity
        yield Corrected(method, by, measure, n, share * observed, mean, *limits, is_cut)


def exact_interval(share: float, n: int) -> Limits:
    """The 95% interval of Clopper and Pearson (1934) of a share of `n`, both 0 to 1. The share may
    be a mean of shares: share x n need not be a whole number."""
    from scipy.stats import beta  # imported here, as it takes seconds

    k = share * n
    low = float(beta.ppf(0.025, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
    return low, high


def rogan_gladen(observed: float, sensitivity: float, specificity: float) -> float:
    """The true share of right answers, 0 to 1, if a judge accepts the share `observed` (Rogan and
    Gladen 1978). Sensitivity + specificity must be above 1."""
    share = (observed + specificity - 1) / (sensitivity + specificity - 1)
    return min(1.0, max(0.0, share))


def corrected_interval(observed: Share, sensitivity: Share, specificity: Share) -> Limits:
    """The 95% interval of `rogan_gladen`, with the uncertainty of all three samples.

    Lang and Reiczigel (2014, Preventive Veterinary Medicine 113, 13-22): Agresti and Coull's shares
    in the formula of Rogan and Gladen, its standard error, and a shift towards the middle.
    """

    def added(share: float, n: float, more: float) -> Share:
        """With `more` answers, half of them accepted."""
        return (share * n + more / 2) / (n + more), n + more

    share, n = added(*observed, _Z**2)
    se, n_se = added(*sensitivity, 2)
    sp, n_sp = added(*specificity, 2)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    true = (share + sp - 1) / (se + sp - 1)
    variance = share * (1 - share) / n + true**2 * of_se + (1 - true) ** 2 * of_sp
    middle = true + 2 * _Z**2 * (true * of_se - (1 - true) * of_sp)
    half = _Z * math.sqrt(variance) / abs(se + sp - 1)
    return max(0.0, min(1.0, middle - half)), min(1.0, max(0.0, middle + half))


def effective_size(accepted: Sequence[float], counts: Sequence[int]) -> float | None:
    """The number of independent answers whose accepted share would vary as much as this one does if
    documents are drawn (Kish 1965). `accepted` and `counts` are by document; None below 10."""
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
        if audit.means and not is_by_person:
            yield _WEIGHTS
        yield from (line for measure, line in audit.unusable if measure in headings)
        corrected = [row for row in audit.corrected if row.measure in headings]
        if corrected:
            yield _CORRECTED
            yield _corrected_table(corrected, headings)


def _rates_table(rates: Sequence[Rate], headings: Mapping[str, str]) -> Table:
    by_kind: dict[tuple[str, bool, bool], dict[str, Rate]] = defaultdict(dict)
    for rate in rates:
        by_kind[rate.kind, rate.is_right, rate.is_typical][rate.measure] = rate
    measures = [name for name in headings if any(rate.measure == name for rate in rates)]
    rows = []
    for (kind, is_right, is_typical), of_kind in by_kind.items():
        cells = {measure: f"{rate.mistakes:.1f} [{rate.low:.1f}, {rate.high:.1f}]"
                 for measure, rate in of_kind.items()}  # fmt: skip
        rows.append({
            "kind": kind if is_typical else f"{kind} *",
            "worth": "right" if is_right else "wrong",
            "mistake": f"false {'rejection' if is_right else 'acceptance'}",
            "n": max(rate.n for rate in of_kind.values()),
            **{headings[name]: cells.get(name) for name in measures},
        })  # fmt: skip
    return Table(rows, left=("worth", "mistake"))


def _corrected_table(corrected: Sequence[Corrected], headings: Mapping[str, str]) -> Table:
    has_groups = any(row.by is not None for row in corrected)
    rows = []
    for row in corrected:
        limits = "n/a" if row.low is None else f"{row.low:.1f}, {row.high:.1f}"
        rows.append({
            "method": row.method,
            **({"by": row.by} if has_groups else {}),
            "measure": headings[row.measure],
            "n": row.n,
            "raw": row.raw,
            "corrected": f"{row.corrected:.1f} [{limits}]{' cut' if row.is_cut else ''}",
        })  # fmt: skip
    return Table(rows, left=("by", "measure"))

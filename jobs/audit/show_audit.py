"""The parts of a report on its rater's mistakes, and on means corrected for them."""

from collections.abc import Iterator, Mapping, Sequence

from jobs.audit.judge_audit import PERSON, Corrected, JudgeAudit, Rate
from jobs.output.cells import Part, Table, counted
from jobs.statistics.means import LEAST_DOCUMENTS
from pipeline.work.stage import Column

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


def audit_parts(audits: Sequence[JudgeAudit], columns: Sequence[Column]) -> Iterator[Part]:
    """The tables of every audit; the measures in the order of `columns`."""
    headings = {column.measure: column.heading for column in columns}
    for audit in audits:
        rates = [rate for rate in (*audit.rates, *audit.means) if rate.measure in headings]
        if not rates:  # the report is of other columns
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
    """A row per kind and worth, a column per measure."""
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

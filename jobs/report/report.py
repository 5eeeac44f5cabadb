"""Compute the report of a run: a row per method with means over questions, costs and provenance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.config.options import ReadOptions
from jobs.report.judge_audit import JudgeAudit, judge_audits
from jobs.report.means import Key, Mean, best_of, means_of
from jobs.report.memory_sizes import Distribution, distributions
from jobs.report.planned_against_made import planned_beside
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.accounts import other_models
from pipeline.store.sql.connection import query
from pipeline.store.sql.memory_names import SHARED, is_shared_sql
from pipeline.store.sql.sql_sandbox import expression
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)


@dataclass(frozen=True)
class Row:
    """One method in one group of questions (`by`); `means` by measure, `counts` by name."""

    method: str
    by: str | None
    means: dict[str, Mean]
    counts: dict[str, int | float | None]
    best: tuple[str, ...] = ()  # measures of which no comparable row has a higher mean


@dataclass(frozen=True)
class Report:
    """The report of a run. `columns` depend on config and corpus, never on outcomes; `measures` are
    the columns that measure the quality of answers."""

    run: str
    inputs: dict[str, int]  # planned, and of them not_done, over all steps
    columns: tuple[Column, ...]
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    memory: dict[str, Any]  # sizes of the corpus and of the memory that methods share
    memories: tuple[dict[str, Any], ...]  # all memories, the shared one first
    stages: tuple[dict[str, Any], ...]  # calls and tokens of each stage, over the whole run
    foot: dict[str, Any]  # provenance: engine, prompts, rater, commits, versions
    planned: list[dict[str, Any]] | None = None  # None without a stored plan
    sizes: tuple[Distribution, ...] = ()  # of documents and memories; only if nothing is asked
    left_out: tuple[dict[str, Any], ...] = ()  # damaged files, and why
    audits: tuple[JudgeAudit, ...] = ()  # of its rater, by known answers and by people


def make_report(options: ReadOptions) -> Report:
    """The report of a run. Raises UsageError for an unusable run, `by`, `where` or `rater`."""
    with options.opened() as (folder, connection):
        return report_of(connection, folder, options)


def report_of(connection: Any, folder: RunFolder, options: ReadOptions) -> Report:
    """The report of the run that `connection` shows; `options` without warehouse and run. Raises
    UsageError for an unusable `by`, `where` or `rater`."""
    facts = folder.report_facts(*_FACTS)
    create_chosen_table(connection, options)
    rater = chosen_rater(connection, options.rater)
    columns, measures = shown_columns(connection, facts["columns"])
    memories = query(connection, filled(_SQL["memories"], is_shared=_IS_SHARED))
    rows = _rows(connection, columns, facts, rater)
    return Report(
        run=folder.path.name,
        inputs=query(connection, INPUTS)[0],
        columns=columns,
        measures=measures,
        rows=rows,
        memory=_memory(connection, memories),
        memories=tuple(memories),
        stages=_stages(connection, facts["stages"]),
        foot={**_foot(folder, facts, rater), "other_models": other_models(connection)},
        planned=planned_beside(folder, connection),
        sizes=() if rows else tuple(distributions(connection)),
        left_out=(*query(connection, "from left_out"), *folder.left_out.rows),
        audits=judge_audits(connection, folder, columns, rater) if rows else (),
    )


def create_chosen_table(connection: Any, options: ReadOptions) -> None:
    """Create the table `chosen` of the report's questions; `by_value` is the group of each."""
    source = """(select q.*, d.title, d.num_words as num_document_words
        from questions q join documents d using (document_id) where q.problem is null)"""
    group = expression(connection, "by", options.by or "null")
    condition = expression(connection, "where", options.where or "true")
    query(  # the line breaks end a comment at the end of an expression
        connection,
        f"""create temp table chosen as select question_id,
        (\n{group}\n)::varchar as by_value from {source} where (\n{condition}\n)""",
    )
    if options.where and not query(connection, "select 1 as one from chosen limit 1"):
        raise UsageError(f"where={condition}: leaves no question of the run")


def chosen_rater(connection: Any, wanted: str | None) -> str | None:
    """The rater whose verdicts are shown: the only one whose name starts with `wanted`; None
    without raters. Raises UsageError if there are several, or none with that prefix."""
    raters = [row["rater"] for row in query(connection, _RATERS)]
    found = [rater for rater in raters if wanted is None or rater.startswith(wanted)]
    if wanted is not None and not found:
        known = ", ".join(raters) or "no model that rates"
        raise UsageError(f"rater={wanted}: the run has {known}")
    if len(found) > 1:
        raise UsageError(f"the run has several raters; add rater=one of {', '.join(found)}")
    return found[0] if found else None


def shown_columns(
    connection: Any, found: Mapping[str, Any]
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns for the kinds of questions that the run has, in order; and the names of those
    that measure answers, which are the ones specific to a kind of question."""
    kinds = query(connection, _SQL["kinds"])[0]
    own = [Column(**column) for kind in ("free", "choice") if kinds[kind] for column in found[kind]]
    of_any = [Column(**column) for column in found["any"]]
    columns = {c.measure: c for c in sorted([*own, *of_any, FALLBACK], key=lambda c: c.place)}
    measures = {column.measure for column in own}
    return tuple(columns.values()), tuple(name for name in columns if name in measures)


def _rows(
    connection: Any, columns: Sequence[Column], facts: Mapping[str, Any], rater: str | None
) -> tuple[Row, ...]:
    groups = query(connection, "select distinct by_value from chosen order by 1 nulls first")
    query(
        connection,
        f"""create temp table mine as
        select m.*, c.by_value from measures m join chosen c using (question_id)
        where value is not null and (rater is null or rater = {_text(rater)})""",
    )
    means = means_of(connection, columns)
    counts = _counts(connection, facts["judging"], rater)
    keys = [(method, group["by_value"]) for group in groups for method in facts["methods"]]
    rows = [Row(*key, _rated(means[key], columns, counts[key]), counts[key]) for key in keys]
    best = best_of([(row.by, row.means) for row in rows], columns)
    return tuple(replace(row, best=own) for row, own in zip(rows, best, strict=True))


def _rated(
    means: dict[str, Mean], columns: Sequence[Column], counts: Mapping[str, int | float | None]
) -> dict[str, Mean]:
    """The means without those of a rater that scored no answer it was asked about: they would be
    over failed answers only, which are not rated."""
    if not counts.get("unscored"):
        return means
    judged = {column.measure for column in columns if column.is_judged}
    return {name: mean for name, mean in means.items() if name not in judged or mean.answered_n}


def _counts(
    connection: Any, judging: Sequence[str], rater: str | None
) -> dict[Key, dict[str, int | float | None]]:
    """Per method and group: questions, answered, unscored; calls and tokens of the method's own
    stages; fallback rate of its memories, and calls and tokens of those that are not shared."""
    found: dict[Key, dict[str, int | float | None]] = defaultdict(dict)
    for row in query(connection, filled(_SQL["counted"], rater=_text(rater))):
        of = found[row["method"], row["by_value"]]
        of |= {row["counted"]: row["value"]}
        of.setdefault("calls", 0)
        of.setdefault("tokens", 0)
    judges = ", ".join(_text(stage) for stage in judging)
    for row in query(connection, filled(_SQL["calls"], judging=judges or "''")):
        found[row.pop("method"), row.pop("by_value")].update(row)
    of_memories = {row.pop("method"): row for row in
                   query(connection, filled(_SQL["rests_on"], is_shared=_IS_SHARED))}  # fmt: skip
    for (method, _), counts in found.items():
        own = of_memories.get(method, {})
        counts |= {k: v for k, v in own.items() if v is not None or k == FALLBACK.measure}
    return found


_FACTS = (  # of the run's config, beside its stages
    "corpus", "engine", "is_model", "methods", "columns", "judging", "family", "wording",
    "reply_format",
)  # fmt: skip
FALLBACK = Column("fallback", "fallback %", 90, has_interval=False)  # of the view `fallbacks`
_IS_SHARED = is_shared_sql("memory")
_RATERS = "select distinct rater from raters order by rater"
INPUTS = "select count(*) as planned, count(*) filter (not_done) as not_done from inputs"


def _text(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def _memory(connection: Any, memories: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sizes of the corpus and of the memory that methods share, without the memory's name."""
    shared = next((row for row in memories if row["memory"] == SHARED), {})
    own = {key: value for key, value in shared.items() if key != "memory"}
    return {**query(connection, _SQL["corpus"])[0], **own}


def _stages(connection: Any, stages: Sequence[str]) -> tuple[dict[str, Any], ...]:
    order = ", ".join(_text(stage) for stage in stages)
    return tuple(query(connection, filled(_SQL["stages"], stages=order)))


def _foot(folder: RunFolder, facts: dict[str, Any], rater: str | None) -> dict[str, Any]:
    """The provenance of the numbers; several commits and versions if the launches differ."""
    launches = folder.readable_launches()
    made = launches[-1] if launches else {}
    versions = [launch.get("versions", {}) for launch in launches]
    hashed = (folder.config() or {}).get("hashed", {})  # of the run, as it was then
    family_sha = sha(hashed.get("family"), 8)
    return {
        "corpus": f"{facts['corpus']} {made.get('corpus_sha', '-')}",
        "engine": facts["engine"],
        "is_model": facts["is_model"],
        "family": f"{facts['family']} {family_sha}",
        "wording": facts["wording"],
        "replies": facts["reply_format"],
        "rater": rater,
        "imported": facts.get("imported", {}),
        "repeats": facts.get("repeats", 1),
        "repeat_from": facts.get("repeat_from", "questions"),
        "without_prompts": facts.get("without_prompts", []),
        "commits": list(dict.fromkeys(launch.get("commit") or "-" for launch in launches)),
        "versions": {
            name: ", ".join(dict.fromkeys(own.get(name, "-") for own in versions))
            for name in made.get("versions", ())
        },
    }

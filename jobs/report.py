"""Compute the report of a run: a row per method with means over questions, costs and provenance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.best import best_of
from jobs.corpus import Distribution, distributions_of
from jobs.means import Key, Mean, means_of
from jobs.options import ReadOptions
from jobs.plan.outcome import planned_beside
from jobs.step_graph import SHARED, is_shared_sql
from pipeline.errors import UsageError
from pipeline.settings import sha
from pipeline.stage import Column
from pipeline.store import connect
from pipeline.store.locks import expression
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name


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
    planned: list[dict[str, Any]] | None = None  # null without a stored plan
    sizes: tuple[Distribution, ...] = ()  # of documents and memories; only where nothing is asked
    left_out: tuple[dict[str, Any], ...] = ()  # damaged files, and why


def make_report(options: ReadOptions) -> Report:
    """The report of a run. Raises UsageError for an unusable run, `by`, `where` or `rater`."""
    name = run_name(options.warehouse, options.run)
    with connect(options.warehouse, name) as connection:
        return report_of(connection, RunFolder(options.warehouse, name), options)


def report_of(connection: Any, folder: RunFolder, options: ReadOptions) -> Report:
    """The report of the run that `connection` shows; `options` without warehouse and run. Raises
    UsageError for an unusable `by`, `where` or `rater`."""
    facts = folder.report_facts(*_FACTS)
    choose(connection, options)
    rater = chosen_rater(connection, options.rater)
    columns, measures = shown_columns(connection, facts["columns"])
    memories = query(connection, _MEMORIES)
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
        foot=_foot(folder, facts, rater),
        planned=planned_beside(folder, connection),
        sizes=() if rows else tuple(distributions_of(connection)),
        left_out=(*query(connection, "from left_out"), *folder.left_out.rows),
    )


def choose(connection: Any, options: ReadOptions) -> None:
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
    """The rater whose verdicts are shown: the only one whose name starts with `wanted`; null
    without raters. Raises UsageError where there are several, or none with that prefix."""
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
    kinds = query(connection, _KINDS)[0]
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
    """The means without those of a rater that scored no answer it was asked about: all that they
    would be over are answers that failed, which nobody rates."""
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
    for row in query(connection, _COUNTED.format(rater=_text(rater))):
        of = found[row["method"], row["by_value"]]
        of |= {row["counted"]: row["value"]}
        of.setdefault("calls", 0)
        of.setdefault("tokens", 0)
    judges = ", ".join(_text(stage) for stage in judging)
    for row in query(connection, _CALLS.format(judging=judges or "''")):
        found[row.pop("method"), row.pop("by_value")].update(row)
    of_memories = {row.pop("method"): row for row in
                   query(connection, _RESTS_ON)}  # fmt: skip
    for (method, _), counts in found.items():
        own = of_memories.get(method, {})
        counts |= {k: v for k, v in own.items() if v is not None or k == FALLBACK.measure}
    return found


_FACTS = (  # of the run's config, beside its stages
    "corpus", "engine", "is_model", "methods", "columns", "judging", "family", "wording",
    "reply_format",
)  # fmt: skip
FALLBACK = Column("fallback", "fallback %", 90, has_interval=False)  # of the view `fallbacks`
_RATERS = "select distinct rater from raters order by rater"
INPUTS = "select count(*) as planned, count(*) filter (not_done) as not_done from inputs"
_KINDS = """
select bool_or(len(options) = 0 and len("references") > 0) as free,
  bool_or(len(options) > 0) as choice from questions"""
_COUNTED = """
select method, by_value, counted, sum(value)::bigint as value
from counts join chosen using (question_id) where rater is null or rater = {rater} group by all"""
_CALLS = """
select method, by_value, count(*) as calls, sum(prompt_tokens + reply_tokens)::bigint as tokens
from calls join chosen using (question_id)
where method is not null and stage not in ({judging}) group by all"""
# Per method, not per question: all questions of a method use the same memories.
_RESTS_ON = f"""
with fell_back as (
  select memory, sum(fell_back) as fell_back, sum(asked) as asked from fallbacks group by memory)
select method, 100 * sum(f.fell_back) / nullif(sum(f.asked), 0) as fallback,
  sum(m.calls) filter (not {is_shared_sql("memory")})::bigint as memory_calls,
  sum(m.tokens) filter (not {is_shared_sql("memory")})::bigint as memory_tokens
from rests_on join memories m using (memory) left join fell_back f using (memory)
group by method"""
_MEMORIES = f"""from memories where pages is not null or calls > 0
order by not {is_shared_sql("memory")}, memory"""
_CORPUS = """
select count(*) filter (not skipped) as documents, coalesce(sum(num_words), 0)::bigint as words
from documents where problem is null"""
# Cached: prompt tokens found in the engine's prefix cache.
_STAGES = """
select stage, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens,
  sum(cached_tokens)::bigint as cached_tokens,
  100 * sum(cached_tokens) / nullif(sum(prompt_tokens), 0) as cached_share,
  sum(reply_tokens)::bigint as reply_tokens
from calls where not is_shared group by stage order by list_position([{stages}], stage)"""


def _text(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def _memory(connection: Any, memories: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sizes of the corpus and of the memory that methods share, without the memory's name."""
    shared = next((row for row in memories if row["memory"] == SHARED), {})
    own = {key: value for key, value in shared.items() if key != "memory"}
    return {**query(connection, _CORPUS)[0], **own}


def _stages(connection: Any, stages: Sequence[str]) -> tuple[dict[str, Any], ...]:
    order = ", ".join(_text(stage) for stage in stages)
    return tuple(query(connection, _STAGES.format(stages=order)))


def _foot(folder: RunFolder, facts: dict[str, Any], rater: str | None) -> dict[str, Any]:
    """The provenance of the numbers; several commits and versions if the launches differ."""
    launches = folder.readable_launches()
    made = launches[-1] if launches else {}
    versions = [launch.get("versions", {}) for launch in launches]
    hashed = (folder.config() or {}).get("hashed", {})  # as it was then, not as it is now
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
        "commits": list(dict.fromkeys(launch.get("commit") or "-" for launch in launches)),
        "versions": {
            name: ", ".join(dict.fromkeys(own.get(name, "-") for own in versions))
            for name in made.get("versions", ())
        },
    }

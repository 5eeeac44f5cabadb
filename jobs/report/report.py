"""Computes the report of a run: methods with means over questions, costs and provenance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.audit.judge_audit import JudgeAudit, judge_audits
from jobs.config.options import ReadOptions
from jobs.problems.causes import reply_findings
from jobs.report.chosen import (
    FALLBACK,
    chosen_methods,
    chosen_rater,
    create_chosen_table,
    shown_columns,
)
from jobs.report.costs import Costs, Prices, costs_of
from jobs.report.memory_sizes import Distribution, distributions
from jobs.statistics.means import Key, Mean, means_of
from jobs.statistics.paired_test import best_of, p_values, pairs_of
from pipeline.core.engine import ENGINES
from pipeline.core.rows import RECORDS
from pipeline.core.settings import sha
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import SHARED, is_shared_sql
from pipeline.store.sql.accounts import other_models
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)


@dataclass(frozen=True)
class Tokens:
    """The mean of the `n` contexts whose tokens were counted."""

    mean: float
    n: int


@dataclass(frozen=True)
class Row:
    """One method in one group of questions (`by`); `means` by measure, `counts` by name. `tokens`:
    by measure, of the contexts of the answers that have a value of it."""

    method: str
    by: str | None
    means: dict[str, Mean]
    counts: dict[str, int | float | None]
    best: tuple[str, ...] = ()  # measures in which the row is marked; see paired_test.py
    tokens: dict[str, Tokens] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """The report of a run. `columns` depend on config and corpus, never on outcomes; `measures`
    names the columns that measure the quality of answers, `main` the first of them with a mean for
    each kind of question."""

    run: str
    inputs: dict[str, int]  # planned, and of them not_done, over all steps
    columns: tuple[Column, ...]
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    memory: dict[str, Any]  # sizes of the corpus and of the memory that methods share
    memories: tuple[dict[str, Any], ...]  # all memories, the shared one first
    stages: tuple[dict[str, Any], ...]  # calls and tokens of each stage, over the whole run
    foot: dict[str, Any]  # provenance: engine, prompts, rater, commits, versions
    sizes: tuple[Distribution, ...] = ()  # of documents and memories; only if nothing is asked
    left_out: tuple[dict[str, Any], ...] = ()  # damaged files, and why
    memory_steps: tuple[dict[str, Any], ...] = ()  # with the methods that depend on each
    total: Mapping[str, float] = field(default_factory=dict)  # all calls, each step once
    unpriced: tuple[str, ...] = ()  # engines whose calls are not in the money of others
    num_tests: int = 0  # behind the marks of best rows
    is_split: bool = False  # costs of memory steps are divided among the methods
    audits: tuple[JudgeAudit, ...] = ()  # of its rater, by known answers and by people
    main: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()  # about the replies of its models


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
    query(connection, _SQL["found_memories"])
    memories = query(connection, filled(_SQL["memories"], is_shared=_IS_SHARED))
    prices = Prices(options.price, facts.get("prices", {}))
    costs = costs_of(connection, facts["judging"], prices, options.split_shared)
    methods = chosen_methods(facts["methods"], options.method)
    rows, num_tests = _rows(connection, columns, methods, rater, costs)
    return Report(
        run=folder.path.name,
        inputs=query(connection, INPUTS)[0],
        columns=columns,
        measures=measures,
        rows=_with_tokens(connection, rows),
        memory=_memory(connection, memories),
        memories=tuple(memories),
        stages=_stages(connection, facts["stages"]),
        foot={
            **_foot(folder, facts, rater),
            "other_models": other_models(connection),
            "ended": folder.why_ended(),
        },
        sizes=() if rows else tuple(distributions(connection)),
        left_out=(*query(connection, "from left_out"), *folder.left_out.rows),
        memory_steps=costs.steps,
        total=costs.total,
        unpriced=costs.unpriced or (),
        num_tests=num_tests,
        is_split=options.split_shared,
        audits=judge_audits(connection, folder, columns, rater) if rows else (),
        main=_main(facts["columns"], measures, rows),
        findings=(*reply_findings(connection, facts),),
    )


def _main(
    found: Mapping[str, Any], measures: Sequence[str], rows: Sequence[Row]
) -> tuple[str, ...]:
    kinds = [{column["measure"] for column in found.get(kind, ())} for kind in ("free", "choice")]
    have = {name for row in rows for name, mean in row.means.items() if mean.mean is not None}
    first = (next((m for m in measures if m in own & have), None) for own in kinds)
    return tuple(dict.fromkeys(filter(None, first)))


def _rows(
    connection: Any,
    columns: Sequence[Column],
    methods: Sequence[str],
    rater: str | None,
    costs: Costs,
) -> tuple[tuple[Row, ...], int]:
    """The rows, and the number of tests behind their marks."""
    groups = query(connection, "select distinct by_value from chosen order by 1 nulls first")
    _sum_by_document(connection, rater)
    means = means_of(connection, columns)
    counts = _counts(connection, rater, costs)
    keys = [(method, group["by_value"]) for group in groups for method in methods]
    shown = {key: _rated(means[key], columns, counts[key]) for key in keys}
    pairs = pairs_of(shown, columns)
    best = best_of(dict(zip(pairs, p_values(connection, pairs), strict=True)))
    rows = (Row(*key, shown[key], counts[key], (*best.get(key, ()),)) for key in keys)
    return tuple(rows), len(pairs)


def _sum_by_document(connection: Any, rater: str | None) -> None:
    """Create the view `mine` of the values of the chosen questions, and the table `of_documents`
    of their sums, one source table at a time: for all at once DuckDB would hold every join in
    memory."""
    found = []
    query(connection, _SQL["of_documents"])
    for record in RECORDS.values():
        part, some = (record.sql().get(name) for name in ("measures", "measured"))
        if part and (some is None or query(connection, f"from ({some}\n) limit 1")):
            found.append(filled(_SQL["values"], part=part, rater=_text(rater)))
            query(connection, filled(_SQL["sums"], values=found[-1]))
            connection.raw.execute("checkpoint")  # which compresses them
    query(connection, filled(_SQL["mine"], values=" union all ".join(found)))


def _rated(
    means: dict[str, Mean], columns: Sequence[Column], counts: Mapping[str, int | float | None]
) -> dict[str, Mean]:
    """Without a rater that scored nothing: its means would be over failed answers only."""
    if not counts.get("unscored"):
        return means
    judged = {column.measure for column in columns if column.is_judged}
    return {name: mean for name, mean in means.items() if name not in judged or mean.answered_n}


def _counts(
    connection: Any, rater: str | None, costs: Costs
) -> dict[Key, dict[str, int | float | None]]:
    found: dict[Key, dict[str, int | float | None]] = defaultdict(dict)
    for row in query(connection, filled(_SQL["counted"], rater=_text(rater))):
        found[row["method"], row["by_value"]][row["counted"]] = row["value"]
    fallbacks = {row["method"]: row["fallback"] for row in query(connection, _SQL["fallbacks_of"])}
    for key, counts in found.items():
        counts |= costs.of(key)
        if key[0] in fallbacks:
            counts[FALLBACK.measure] = fallbacks[key[0]]
    return found


_FACTS = (  # of the run's config, beside its stages
    "corpus", "engine", "is_model", "methods", "columns", "judging", "family", "wording",
    "reply_format",
)  # fmt: skip
_IS_SHARED = is_shared_sql("memory")
INPUTS = "select count(*) as planned, count(*) filter (not_done) as not_done from planned_done_rows"


def _text(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def _memory(connection: Any, memories: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    shared = next((row for row in memories if row["memory"] == SHARED), {})
    own = {key: value for key, value in shared.items() if key != "memory"}
    return {**query(connection, _SQL["corpus"])[0], **own}


def _stages(connection: Any, stages: Sequence[str]) -> tuple[dict[str, Any], ...]:
    order = ", ".join(_text(stage) for stage in stages)
    return tuple(query(connection, filled(_SQL["stages"], stages=order)))


def _with_tokens(connection: Any, rows: Sequence[Row]) -> tuple[Row, ...]:
    query(connection, _SQL["token_sums"])
    if query(connection, "from token_sums where not is_of_all limit 1"):
        query(connection, _SQL["tokens_of_some"])  # which reads every value again
    found: dict[Key, dict[str, Tokens]] = defaultdict(dict)
    for row in query(connection, _SQL["tokens"]):
        found[row["method"], row["by_value"]][row["measure"]] = Tokens(row["mean"], row["n"])
    return tuple(replace(row, tokens=found[row.method, row.by]) for row in rows)


def _foot(folder: RunFolder, facts: dict[str, Any], rater: str | None) -> dict[str, Any]:
    """The provenance of the numbers; several commits and versions if the launches differ."""
    launches = folder.readable_launches()
    made = launches[-1] if launches else {}
    versions = [launch.get("versions", {}) for launch in launches]
    stored = folder.config() or {}  # as the run was started
    family_sha = sha(stored.get("hashed", {}).get("family"), 8)
    return {
        "corpus": f"{facts['corpus']} {made.get('corpus_sha') or '-'}",
        "engine": facts["engine"],
        "engine_note": facts["engine_note"] if "engine_note" in facts else _engine_note(facts),
        "is_model": facts["is_model"],
        "family": f"{facts['family']} {family_sha}",
        "wording": facts["wording"],
        "replies": facts["reply_format"],
        "rater": rater,
        "plugins": stored.get("config", {}).get("plugins"),
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


def _engine_note(facts: Mapping[str, Any]) -> str | None:
    """For runs of an earlier version, which have not stored the note."""
    import pipeline.asking.reader  # noqa: F401  # imported here, with all engines

    return getattr(ENGINES.get(facts["engine"]), "about_replies", None)

"""Computes the report of a run: methods with means over questions, costs and provenance; chooses
its questions, methods, columns and rater, also for other commands.

Costs are of all `calls` of the run without copied ones, in three parts: a method's own calls, those
of the memory steps that its rows depend on, and those of its verdicts.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.audit.judge_audit import JudgeAudit, judge_audits
from jobs.config.options import ReadOptions, price_of
from jobs.problems.causes import reply_findings
from jobs.statistics.statistics import Mean, MethodGroup, best_of, means_of, p_values, pairs_of
from pipeline.core.engine import Price
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.rows import RECORDS
from pipeline.core.settings import sha
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import SHARED, is_shared_sql
from pipeline.store.sql.accounts import other_models
from pipeline.store.sql.connection import expression, query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)
FALLBACK = Column(  # of the view `fallbacks`
    "fallback", "fallback %", 90, has_interval=False,
    about="share of the page ends of the method's memory that were chosen without a usable reply",
)  # fmt: skip
INPUTS = "select count(*) as planned, count(*) filter (not_done) as not_done from planned_done_rows"
_FACTS = (  # of the run's config, beside its stages
    "corpus", "engine", "is_model", "methods", "columns", "judging", "family", "wording",
    "reply_format",
)  # fmt: skip
_SUMMED = ("calls", "prompt_tokens", "cached_tokens", "reply_tokens")
_SUMS = "count(*) as calls, " + ", ".join(f"sum({n})::bigint as {n}" for n in _SUMMED[1:])
Spent = Mapping[str, float]
"""`calls`, `tokens` and, if a call has a price, `money`."""
_Costs = Mapping[tuple[str, str | None, str], Spent]
"""By method, group and part: "", "memory_" or "judging_"."""


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
    best: tuple[str, ...] = ()  # measures in which the row is marked; see best_of
    tokens: dict[str, Tokens] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """The report of a run. `columns` depend on config and corpus, never on outcomes; `measures`
    names those that measure answers, `main` the first with a mean for each kind of question."""

    run: str
    inputs: dict[str, int]  # planned, and of them not_done, over all steps
    columns: tuple[Column, ...]
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    memory: dict[str, Any]  # sizes of the corpus and of the memory that methods share
    memories: tuple[dict[str, Any], ...]  # all memories, the shared one first
    stages: tuple[dict[str, Any], ...]  # calls and tokens of each stage, over the whole run
    foot: dict[str, Any]  # provenance: engine, prompts, rater, commits, versions
    sizes: tuple[dict[str, Any], ...] = ()  # `distributions`; only if nothing is asked
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
    query(connection, _SQL["run_memories"])
    memories = query(connection, filled(_SQL["memories"], is_shared=is_shared_sql("memory")))
    costs, memory_steps, total, unpriced = _costs(
        connection, facts, options.price, options.split_shared
    )
    methods = [name for name in facts["methods"] if name.startswith(options.method or "")]
    if options.method and not methods:
        near = nearest(options.method, sorted(facts["methods"]), 5)
        raise UsageError(f"method={options.method}: not in the run; nearest: {near}")
    rows, num_tests = _rows(connection, columns, methods, rater, costs, total)
    shared = next((row for row in memories if row["memory"] == SHARED), {})
    stages = ", ".join(map(text, facts["stages"]))
    return Report(
        run=folder.path.name,
        inputs=query(connection, INPUTS)[0],
        columns=columns,
        measures=measures,
        rows=_with_tokens(connection, rows),
        memory={
            **query(connection, _SQL["corpus"])[0],
            **{key: value for key, value in shared.items() if key != "memory"},
        },
        memories=tuple(memories),
        stages=tuple(query(connection, filled(_SQL["stages"], stages=stages))),
        foot={
            **_foot(folder, facts, rater),
            "other_models": other_models(connection),
            "ended": folder.why_ended(),
        },
        sizes=() if rows else tuple(distributions(connection)),
        left_out=(*query(connection, "from left_out"), *folder.left_out.rows),
        memory_steps=memory_steps,
        total=total,
        unpriced=unpriced,
        num_tests=num_tests,
        is_split=options.split_shared,
        audits=judge_audits(connection, folder, columns, rater) if rows else (),
        main=_main_measures(facts["columns"], measures, rows),
        findings=(*reply_findings(connection, facts),),
    )


def create_chosen_table(connection: Any, options: ReadOptions) -> None:
    """Create the table `chosen` of the report's questions. `by_value` is a question's group; the
    numbers `document_place` and `question_place` stand for the longer ids in other tables. Raises
    UsageError if no question is left."""
    group = expression("by", options.by or "null")
    condition = expression("where", options.where or "true")
    query(connection, filled(_SQL["chosen"], group=group, condition=condition))
    if options.where and not query(connection, "select 1 as one from chosen limit 1"):
        raise UsageError(f"where={condition}: leaves no question of the run")


def chosen_rater(connection: Any, wanted: str | None) -> str | None:
    """The rater whose verdicts are shown: the only one whose name starts with `wanted`; None
    without raters. Raises UsageError if there are several, or none with that prefix."""
    raters = [row["rater"] for row in query(connection, _SQL["raters"])]
    matching = [rater for rater in raters if rater.startswith(wanted or "")]
    if wanted is not None and not matching:
        raise UsageError(
            f"rater={wanted}: the run has {', '.join(raters) or 'no model that rates'}"
        )
    if len(matching) > 1:
        raise UsageError(f"the run has several raters; add rater=one of {', '.join(matching)}")
    return matching[0] if matching else None


def shown_columns(
    connection: Any, declared: Mapping[str, Any]
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns for the kinds of questions that the run has; and the names of those that measure
    answers, which are specific to a kind of question and come first."""
    has_kind = query(connection, _SQL["kinds"])[0]
    kinds = [kind for kind in ("free", "choice") if has_kind[kind]]
    measures = {column["measure"] for kind in kinds for column in declared[kind]}
    shown = [Column(**column) for kind in (*kinds, "any") for column in declared[kind]]
    shown = [*shown, FALLBACK]
    shown.sort(key=lambda column: (column.measure not in measures, column.place))
    columns = {column.measure: column for column in shown}
    return tuple(columns.values()), tuple(name for name in columns if name in measures)


def answers(connection: Any, where: str | None, method: str | None = None) -> str:
    """A subquery with a row per answer that satisfies `where`, of the methods that begin with
    `method`, and with the columns of its question. Raises UsageError if `where` is no SQL."""
    condition = expression("where", where or "true")
    return f"({filled(_SQL['answers'], begins=text(method or ''), condition=condition)})"


def distributions(connection: Any) -> list[dict[str, Any]]:
    """The sizes of documents and memories (ReadAgent's figures 2, 4, 5 and 7): for a `measure` of
    n documents or pages mean, quartiles and extremes; `memory` is None for documents themselves."""
    return query(connection, filled(_SQL["sizes"], is_shared=is_shared_sql("memory")))


def _main_measures(
    declared: Mapping[str, Any], measures: Sequence[str], rows: Sequence[Row]
) -> tuple[str, ...]:
    """For each kind of question the first measure that has a mean."""
    have = {name for row in rows for name, mean in row.means.items() if mean.mean is not None}
    main: dict[str, None] = {}
    for kind in ("free", "choice"):
        of_kind = have.intersection(column["measure"] for column in declared.get(kind, ()))
        main |= dict.fromkeys([name for name in measures if name in of_kind][:1])
    return tuple(main)


def _rows(
    connection: Any,
    columns: Sequence[Column],
    methods: Sequence[str],
    rater: str | None,
    costs: _Costs,
    total: Spent,
) -> tuple[tuple[Row, ...], int]:
    """The rows, and the number of tests behind their marks."""
    groups = query(connection, "select distinct by_value from chosen order by 1 nulls first")
    rater_sql = "null" if rater is None else text(rater)
    # The view `mine` has the values of the chosen questions, the table `of_documents` their sums.
    # They are summed one source table at a time: DuckDB would hold all joins in memory at once.
    values = []
    query(connection, _SQL["of_documents"])
    for record in RECORDS.values():
        part, some = (record.sql().get(name) for name in ("measures", "measured"))
        if part and (some is None or query(connection, f"from ({some}\n) limit 1")):
            values.append(filled(_SQL["values"], part=part, rater=rater_sql))
            query(connection, filled(_SQL["sums"], values=values[-1]))
            connection.raw.execute("checkpoint")  # which compresses them
    query(connection, filled(_SQL["mine"], values=" union all ".join(values)))
    means = means_of(connection, columns)
    counts = _counts(connection, rater_sql, costs, total)
    judged = {column.measure for column in columns if column.is_judged}
    shown = {}
    for key in ((method, group["by_value"]) for group in groups for method in methods):
        # A rater that scored nothing has no mean: it would be over failed answers only.
        left_out = judged if counts[key].get("unscored") else ()
        shown[key] = {name: mean for name, mean in means[key].items()
                      if name not in left_out or mean.answered_n}  # fmt: skip
    pairs = pairs_of(shown, columns)
    best = best_of(dict(zip(pairs, p_values(connection, pairs), strict=True)))
    rows = (Row(*key, shown[key], counts[key], (*best.get(key, ()),)) for key in shown)
    return tuple(rows), len(pairs)


def _counts(
    connection: Any, rater_sql: str, costs: _Costs, total: Spent
) -> dict[MethodGroup, dict[str, int | float | None]]:
    by_key: dict[MethodGroup, dict[str, int | float | None]] = defaultdict(dict)
    for row in query(connection, filled(_SQL["counted"], rater=rater_sql)):
        by_key[row["method"], row["by_value"]][row["counted"]] = row["value"]
    fallbacks = {row["method"]: row["fallback"] for row in query(connection, _SQL["fallbacks_of"])}
    for (method, by), counts in by_key.items():
        # Of memories for all documents, whatever the group.
        for part, group in (("", by), ("memory_", None), ("judging_", by)):
            spent = costs.get((method, group, part), {})
            counts |= {f"{part}{name}": spent.get(name, 0) for name in total}
        if method in fallbacks:
            counts[FALLBACK.measure] = fallbacks[method]
    return by_key


def _costs(
    connection: Any, facts: Mapping[str, Any], price: str | None, is_split: bool
) -> tuple[_Costs, tuple[dict[str, Any], ...], Spent, tuple[str, ...]]:
    """The costs of the questions in the table `chosen`, by `price` or those of each step's engine;
    the memory steps, with the `methods` that depend on each; the total, in which each step counts
    once; and the engines without a price, if others have one. If `is_split`, the costs of a memory
    step are divided among its methods; else each has all of them. Raises UsageError for an unusable
    price."""
    given = None if price is None else price_of(price)
    prices = {step_id: Price(**of_step) for step_id, of_step in facts.get("prices", {}).items()}
    has_price = given is not None or bool(prices)

    def spent(row: Mapping[str, Any], divisor: int = 1) -> dict[str, float]:
        calls, prompt, cached, reply = (row[name] for name in _SUMMED)
        costs = {"calls": calls, "tokens": prompt + reply}
        if has_price:
            of_step = given or prices.get(row["step_id"], Price())
            costs["money"] = of_step.of(prompt, cached, reply) or 0.0
        return {name: value / divisor if divisor > 1 else value for name, value in costs.items()}

    query(connection, _SQL["rests"])
    of_methods: dict[tuple[str, str | None, str], Counter[str]] = defaultdict(Counter)
    judging = ", ".join(map(text, facts["judging"])) or "''"
    for row in query(connection, filled(_SQL["calls_of_methods"], judging=judging, sums=_SUMS)):
        part = "judging_" if row["is_judging"] else ""
        of_methods[row["method"], row["by_value"], part].update(spent(row))
    total = Counter[str]({"calls": 0, "tokens": 0, **({"money": 0.0} if has_price else {})})
    for costs in of_methods.values():
        total.update(costs)
    steps = query(connection, filled(_SQL["calls_of_memories"], sums=_SUMS))
    for step in steps:
        total.update(spent(step))
        divisor = len(step["methods"]) if is_split else 1
        for method in step["methods"]:
            of_methods[method, None, "memory_"].update(spent(step, divisor))
    engines = query(connection, _SQL["engines"]) if prices and not given else []
    unpriced = [row["engine"] for row in engines
                if not prices.get(row["step_id"], Price()).is_known]  # fmt: skip
    memory_steps = tuple({**{k: v for k, v in step.items() if k not in _SUMMED}, **spent(step)}
                         for step in steps)  # fmt: skip
    return of_methods, memory_steps, dict(total), tuple(dict.fromkeys(unpriced))


def _with_tokens(connection: Any, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with the means of their contexts' tokens."""
    query(connection, _SQL["token_sums"])
    if query(connection, "from token_sums where not is_of_all limit 1"):
        query(connection, _SQL["tokens_of_some"])  # which reads every value again
    tokens: dict[MethodGroup, dict[str, Tokens]] = defaultdict(dict)
    for row in query(connection, _SQL["tokens"]):
        tokens[row["method"], row["by_value"]][row["measure"]] = Tokens(row["mean"], row["n"])
    return tuple(replace(row, tokens=tokens[row.method, row.by]) for row in rows)


def _foot(folder: RunFolder, facts: dict[str, Any], rater: str | None) -> dict[str, Any]:
    """The provenance of the numbers; several commits and versions if the launches differ."""
    launches = folder.readable_launches()
    last = launches[-1] if launches else {}
    versions = [launch.get("versions", {}) for launch in launches]
    stored = folder.config() or {}  # as the run was started
    family_sha = sha(stored.get("hashed", {}).get("family"), 8)
    return {
        "corpus": f"{facts['corpus']} {last.get('corpus_sha') or '-'}",
        "engine": facts["engine"],
        "engine_note": facts.get("engine_note"),
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
            name: ", ".join(dict.fromkeys(of_launch.get(name, "-") for of_launch in versions))
            for name in last.get("versions", ())
        },
    }

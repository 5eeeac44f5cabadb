"""The numbers of a run: a row per method, means over all its questions, and what they rest on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.intervals import interval, sd
from jobs.options import ReadOptions
from jobs.plan.outcome import planned_beside
from pipeline.errors import UsageError
from pipeline.settings import sha
from pipeline.store import connect, query, run_name
from pipeline.store.runs import RunFolder


@dataclass(frozen=True)
class Mean:
    """A mean over all questions (a problem counts 0), and over those without a problem."""

    mean: float | None
    n: int
    answered_mean: float | None
    answered_n: int
    low: float | None = None  # 95% interval of the mean over documents
    high: float | None = None
    sd: float | None = None  # of the repeats' means


@dataclass(frozen=True)
class Row:
    """One method in one group of questions; `means` by measure, `counts` by what they count."""

    method: str
    by: str | None
    means: dict[str, Mean]
    counts: dict[str, int | float | None]


@dataclass(frozen=True)
class Report:
    """`measures` follow from config and corpus, never from outcomes."""

    run: str
    inputs: dict[str, int]  # planned, and of them not_done, over all steps
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    memory: dict[str, Any]
    stages: tuple[dict[str, Any], ...]  # calls and tokens of each stage, over the whole run
    foot: dict[str, Any]
    planned: list[dict[str, Any]] | None = None  # null where no plan was made


def make_report(options: ReadOptions) -> Report:
    """The report of a run. Raises UsageError where run, `by`, `where`, `rater` are of no use."""
    name = run_name(options.warehouse, options.run)
    folder = RunFolder(options.warehouse, name)
    facts = (folder.config() or {})["report"]
    with connect(options.warehouse, name) as connection:
        _choose(connection, options)
        raters = query(
            connection, "select distinct rater from ratings where rater_is_model order by rater"
        )
        rater = _rater([row["rater"] for row in raters], options.rater)
        return Report(
            run=name,
            inputs=_inputs(connection),
            measures=_measures(connection, facts),
            rows=_rows(connection, facts["methods"], rater),
            memory=_memory(connection),
            stages=tuple(query(connection, _STAGES)),
            foot=_foot(folder, facts, rater),
            planned=planned_beside(folder, connection),
        )


def _choose(connection: Any, options: ReadOptions) -> None:
    """The questions the report is over, as a table; `by_value` names the group each is in."""
    source = """(select q.*, d.title, d.num_words as num_document_words
        from questions q join documents d using (document_id) where q.problem is null)"""
    group, condition = options.by or "null", options.where or "true"
    query(
        connection,
        f"""create temp table chosen as select question_id,
        ({group})::varchar as by_value from {source} where ({condition})""",
    )
    if options.where and not query(connection, "select 1 as one from chosen limit 1"):
        raise UsageError(f"where={condition}: leaves no question of the run")


def _rater(raters: Sequence[str], wanted: str | None) -> str | None:
    """The rater whose verdicts fill the LR columns: the only one whose name begins as `wanted`."""
    found = [rater for rater in raters if wanted is None or rater.startswith(wanted)]
    if wanted is not None and not found:
        there = ", ".join(raters) or "no model that rates"
        raise UsageError(f"rater={wanted}: the run has {there}")
    if len(found) > 1:
        raise UsageError(f"the run has several raters; add rater=one of {', '.join(found)}")
    return found[0] if found else None


def _inputs(connection: Any) -> dict[str, int]:
    (row,) = query(
        connection,
        """select count(*) as planned, count(*) filter (not_done) as not_done from inputs""",
    )
    return row


def _measures(connection: Any, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The quality measures: LR and the family's metrics for free-form questions, accuracy where
    there are options or the family has judges."""
    kinds = query(
        connection,
        """select bool_or(len(options) = 0 and len("references") > 0) as free,
        bool_or(len(options) > 0) as choice from questions""",
    )[0]
    columns = [c for kind in ("free", "choice") if kinds[kind] for c in facts["columns"][kind]]
    return tuple(c["measure"] for c in columns)


def _rows(connection: Any, methods: Sequence[str], rater: str | None) -> tuple[Row, ...]:
    groups = query(connection, "select distinct by_value from chosen order by 1 nulls first")
    means, counts = _means(connection, rater), _counts(connection, rater)
    keys = [(method, group["by_value"]) for group in groups for method in methods]
    return tuple(Row(*key, means[key], counts[key]) for key in keys)


Key = tuple[str, str | None]


def _means(connection: Any, rater: str | None) -> dict[Key, dict[str, Mean]]:
    """Every measure of every method and group, from the `measures` view."""
    query(
        connection,
        f"""create temp table mine as
        select m.*, c.by_value from measures m join chosen c using (question_id)
        where value is not null and (rater is null or rater = {_text(rater)})""",
    )
    sums: dict[Any, list[tuple[float, int]]] = defaultdict(list)
    for row in query(connection, _PER_DOCUMENT):
        sums[_key(row)].append((row["s"], row["n"]))
    repeats: dict[Any, list[float]] = defaultdict(list)
    for row in query(connection, _PER_REPEAT):
        repeats[_key(row)].append(row["mean"])
    found: dict[Key, dict[str, Mean]] = defaultdict(dict)
    for row in query(connection, _OVERALL):
        numbers = {k: row[k] for k in ("mean", "n", "answered_mean", "answered_n")}
        low, high = interval(*zip(*sums[_key(row)], strict=True)) or (None, None)
        mean = Mean(**numbers, low=low, high=high, sd=sd(repeats[_key(row)]))
        found[row["method"], row["by_value"]][row["measure"]] = mean
    return found


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["method"], row["by_value"], row["measure"]


_OVERALL = """
select method, by_value, measure, avg(value) as mean, count(*) as n,
  avg(value) filter (problem is null) as answered_mean,
  count(*) filter (problem is null) as answered_n
from mine group by method, by_value, measure"""
_PER_DOCUMENT = """
select method, by_value, measure, document_id, sum(value) as s, count(*) as n
from mine group by all order by document_id"""
_PER_REPEAT = """
select method, by_value, measure, repeat, avg(value) as mean
from mine group by all order by repeat"""


def _counts(connection: Any, rater: str | None) -> dict[Key, dict[str, int | float | None]]:
    """Questions, answered, unscored, calls and tokens of each method's look-ups and answers."""
    found: dict[Key, dict[str, int | float | None]] = defaultdict(dict)
    for statement in (_ANSWERED, _CALLS, _UNSCORED.format(rater=_text(rater)), _FALLBACK):
        for row in query(connection, statement):
            key = row.pop("method"), row.pop("by_value")
            found[key].update(row)
    return found


_ANSWERED = """
select method, by_value, count(*) filter (not skipped) as n,
  count(*) filter (problem is null and not skipped) as answered, 0 as calls, 0 as tokens
from answers join chosen using (question_id) group by all"""
_CALLS = """
select method, by_value, count(*) as calls, sum(prompt_tokens + reply_tokens)::bigint as tokens
from calls join chosen using (question_id) where stage in ('look_up', 'answer') group by all"""
_UNSCORED = """
select method, by_value, count(*) filter (lr = 'unscored') as unscored
from lr join chosen using (question_id) where rater = {rater} group by all"""
# The same for every method that reads pages: whose pages they are.
_FALLBACK = """
with share as (
  select 100 * count(*) filter (chosen_by = 'fallback')
    / nullif(count(*) filter (chosen_by in ('model', 'fallback')), 0) as fallback from pages)
select distinct a.method, by_value, fallback from answers a join chosen using (question_id)
join steps s using (step_id), share where list_has_any(s.upstream, (
  select list(step_id) from steps where stage = 'paginate'))"""


def _text(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def _memory(connection: Any) -> dict[str, Any]:
    """What was read: documents, pages and gists, in words."""
    return (
        query(
            connection,
            """select (select count(*) from documents where problem is null and not skipped)
            as documents,
          (select coalesce(sum(num_words), 0)::bigint from documents where problem is null)
            as words,
          count(*) as pages, avg(p.num_words) as words_per_page, avg(g.num_words) as words_per_gist,
          100 * (1 - sum(g.num_words) / nullif(sum(p.num_words), 0)) as gist_compression,
          count(*) filter (g.problem = 'truncated') as truncated_gists,
          100 * count(*) filter (chosen_by = 'fallback')
            / nullif(count(*) filter (chosen_by in ('model', 'fallback')), 0) as fallback
        from pages p left join gists g using (document_id, page_index)""",
        )[0]
        | query(connection, _MEMORY_CALLS)[0]
    )


# Cached: prompt tokens that the engine had from an earlier prompt that begins the same.
_STAGES = """
select stage, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens,
  sum(cached_tokens)::bigint as cached_tokens,
  100 * sum(cached_tokens) / nullif(sum(prompt_tokens), 0) as cached_share,
  sum(reply_tokens)::bigint as reply_tokens
from calls where not is_shared group by stage
order by list_position(['paginate', 'gist', 'look_up', 'answer', 'rate'], stage)"""
_MEMORY_CALLS = """
select count(*) as calls, coalesce(sum(prompt_tokens + reply_tokens), 0)::bigint as tokens
from calls where stage in ('paginate', 'gist') and not is_shared"""


def _foot(folder: RunFolder, facts: dict[str, Any], rater: str | None) -> dict[str, Any]:
    """What the numbers were made by; several commits and versions where a run took several."""
    launches = folder.launches()
    made = launches[-1]
    hashed = (folder.config() or {})["hashed"]  # as the family was then, not as it is now
    family_sha = sha(hashed["family"], 8)
    return {
        "corpus": f"{facts['corpus']} {made['corpus_sha']}",
        "engine": facts["engine"],
        "is_model": facts["is_model"],
        "family": f"{facts['family']} {family_sha}",
        "wording": facts["wording"],
        "replies": facts["reply_format"],
        "rater": rater,
        "commits": list(dict.fromkeys(launch["commit"] or "-" for launch in launches)),
        "versions": {
            name: ", ".join(dict.fromkeys(launch["versions"].get(name, "-") for launch in launches))
            for name in made["versions"]
        },
    }

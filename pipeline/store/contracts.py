"""The views that commands read, independent of the stages: a contract with the record classes.

Some combine selects of record classes (`measures`, `memories`, `sizes`, `counts`,
`page_texts`, `results`); the others are derived from the columns of tables (`inputs`, `accounting`,
`runs`, `rests_on`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.rows import RECORDS, Call


def derived(tables: Mapping[str, Any]) -> Iterator[str]:
    """`create view` statements for the views of record classes and all contract views.

    `tables`: table name -> Arrow schema.
    """
    records = [record for name, record in RECORDS.items() if name in tables]
    for prefix in ("", "all_"):
        for record in records:
            run = "run, " if prefix else ""
            yield from (view.format(prefix=prefix, run=run) for view in record.views)
    yield _inputs_view(tables)
    yield _inputs_view(tables, "all_", "raw_")
    yield from (_ACCOUNTING.format(all="", run=""), _ACCOUNTING.format(all="all_", run="run, "))
    yield _RUNS
    yield _rests_on_view(tables)
    yield _memories_view(tables, [record.memories for record in records if record.memories])
    for view in ("measures", "sizes", "counts", "page_texts", "results"):
        parts = [f"from ({part})" for record in records if (part := getattr(record, view))]
        yield f"create view {view} as {' union all by name '.join(parts)}"


def _inputs_view(tables: Mapping[str, Any], prefix: str = "", rows_of: str = "") -> str:
    """One row per planned input, of the run or of all runs, and its outcome, from the rows of its
    step's table."""
    parts = []
    for table, columns in tables.items():
        if table == Call.table:
            continue
        skipped = "bool_and(skipped)" if "skipped" in columns.names else "false"
        question = "question_id" if "question_id" in columns.names else "null::varchar"
        parts.append(
            f"""select '{table}' as table_name, step_id, unit, document_id,
            {question} as question_id, {skipped} as skipped,
            min(problem) as problem
            from raw_{table} group by all"""
        )
    run = "u.run, " if prefix else ""
    return f"""
    create view {prefix}inputs as
    with outcomes as ({" union all ".join(parts)}),
    done as (select distinct step_id, unit from {rows_of}shards where table_name <> '{Call.table}')
    select {run}u.step_id, u.unit, u.document_id, u.question_id,
      d.unit is null as not_done, o.step_id is not null as has_rows, o.problem, o.skipped
    from {prefix}planned u
    left join done d on u.step_id = d.step_id and u.unit = d.unit
    left join outcomes o on u.step_id = o.step_id and u.unit = o.unit
      and u.document_id = o.document_id and u.question_id is not distinct from o.question_id"""


_ACCOUNTING = """
create view {all}accounting as
with counted as (
  select {run}step_id, not_done, has_rows, skipped, problem, count(*) as n from {all}inputs
  group by all)
select {run}step_id, sum(n)::bigint as inputs,
  coalesce(sum(n) filter (has_rows and problem is null and not skipped), 0)::bigint as ok,
  coalesce(sum(n) filter (has_rows and problem is not null), 0)::bigint as problem,
  coalesce(sum(n) filter (has_rows and problem is null and skipped), 0)::bigint as skipped,
  coalesce(sum(n) filter (not_done), 0)::bigint as not_done,
  list({{'problem': problem, 'inputs': n}}) filter (problem is not null) as problems
from counted group by {run}step_id"""

_RUNS = """
create view runs as
with cost as (
  select step_id, count(*) as calls, sum(prompt_tokens) as prompt_tokens,
    sum(cached_tokens) as cached_tokens, sum(reply_tokens) as reply_tokens,
    sum(seconds) as seconds
  from calls where not is_shared group by step_id)
select (select any_value(run) from planned) as run, s.stage, s.method, s.repeat, a.*,
  coalesce(c.calls, 0) as calls, coalesce(c.prompt_tokens, 0) as prompt_tokens,
  coalesce(c.cached_tokens, 0) as cached_tokens, coalesce(c.reply_tokens, 0) as reply_tokens,
  coalesce(c.seconds, 0) as seconds
from accounting a left join steps s using (step_id) left join cost c using (step_id)"""


def _rests_on_view(tables: Mapping[str, Any]) -> str:
    """A row per method and memory that its rows refer to."""
    parts = [
        f"select method, memory from {table}"
        for table, columns in tables.items()
        if {"method", "memory"} <= {*columns.names}
    ]
    return f"""create view rests_on as select distinct method, memory
    from ({" union all ".join(parts)}) where method is not null and memory is not null"""


def _memories_view(tables: Mapping[str, Any], parts: list[str]) -> str:
    """A row per memory: the size of its corpus, the columns of record classes, and its calls and
    tokens (those made for no method)."""
    index = [
        f"select memory from {table}"
        for table, columns in tables.items()
        if "memory" in columns.names and "question_id" not in columns.names
    ]
    joined = " ".join(f"left join ({part}) using (memory)" for part in parts)
    return f"""create view memories as
    with own as (
      select memory, count(*) as calls, sum(prompt_tokens + reply_tokens)::bigint as tokens
      from calls where method is null and not is_shared group by memory),
    corpus as (select count(*) filter (not skipped) as documents,
      coalesce(sum(num_words), 0)::bigint as words from documents where problem is null)
    select * replace (coalesce(calls, 0) as calls, coalesce(tokens, 0) as tokens)
    from (select distinct memory from ({" union all ".join(index)})) cross join corpus
    {joined} left join own using (memory)"""

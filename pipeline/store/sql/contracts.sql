-- The views that commands read. Braces stand for what contracts.py fills in.

-- name: inputs
create view {prefix}inputs as
-- One row per planned input, of the run or of all runs, and its outcome, from the rows of its
-- step's table.
with outcomes as ({outcomes}),
done as (select distinct step_id, unit from {rows_of}shards where table_name <> 'calls')
select {run}u.step_id, u.unit, u.document_id, u.question_id,
  d.unit is null as not_done, o.step_id is not null as has_rows, o.problem, o.skipped
from {prefix}planned u
left join done d on u.step_id = d.step_id and u.unit = d.unit
left join outcomes o on u.step_id = o.step_id and u.unit = o.unit
  and u.document_id = o.document_id and u.question_id is not distinct from o.question_id;

-- name: outcomes
select '{table}' as table_name, step_id, unit, document_id, {question} as question_id,
  {skipped} as skipped, min(problem) as problem
from raw_{table} group by all;

-- name: accounting
create view {prefix}accounting as
with counted as (
  select {run}step_id, not_done, has_rows, skipped, problem, count(*) as n from {prefix}inputs
  group by all)
select {run}step_id, sum(n)::bigint as inputs,
  coalesce(sum(n) filter (has_rows and problem is null and not skipped), 0)::bigint as ok,
  coalesce(sum(n) filter (has_rows and problem is not null), 0)::bigint as problem,
  coalesce(sum(n) filter (has_rows and problem is null and skipped), 0)::bigint as skipped,
  coalesce(sum(n) filter (not_done), 0)::bigint as not_done,
  list({'problem': problem, 'inputs': n}) filter (problem is not null) as problems
from counted group by {run}step_id;

-- name: runs
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
from accounting a left join steps s using (step_id) left join cost c using (step_id);

-- name: rests_on
create view rests_on as
-- A row per method and memory that its rows refer to.
select distinct method, memory from ({parts}) where method is not null and memory is not null;

-- name: memories
create view memories as
-- A row per memory: the size of its corpus, the columns of the tables' own parts, and its calls and
-- tokens (those made for no method).
with own as (
  select memory, count(*) as calls, sum(prompt_tokens + reply_tokens)::bigint as tokens
  from calls where method is null and not is_shared group by memory),
corpus as (
  select count(*) filter (not skipped) as documents, coalesce(sum(num_words), 0)::bigint as words
  from documents where problem is null)
select * replace (coalesce(calls, 0) as calls, coalesce(tokens, 0) as tokens)
from (select distinct memory from ({indexes})) cross join corpus
{joins} left join own using (memory);

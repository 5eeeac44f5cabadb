-- name: rests
-- A row per method and step that makes its rows, or rows that these rest on.
create temp table rests as
with recursive found as (
  select distinct method, step_id from steps where method is not null
  union
  select f.method, unnest(s.upstream) from found f join steps s using (step_id))
from found;

-- name: of_methods
select method, by_value, step_id, stage in ({judging}) as is_judging, {sums}
from call_rows join chosen using (question_id) where method is not null and not is_shared group by all;

-- name: engines
select distinct engine, step_id from call_rows where not is_shared order by all;

-- name: of_memories
with spent as (
  select coalesce(memory, '-') as memory, stage, step_id, {sums}
  from call_rows where method is null and not is_shared group by all)
select s.*, coalesce(list(method order by method) filter (method is not null), []) as methods
from spent s left join rests using (step_id) group by all order by memory, stage, step_id;

-- name: paired
create view {prefix}paired as
-- A row per question, metric and ordered pair of methods that both have a value of it.
-- other: the method that `method` is compared with
-- metric: its name in the report
-- value: of `method`, 0-100
-- other_value: of `other`, 0-100
-- difference: value - other_value
with valued as (
  select {run}method, repeat, document_id, question_id, metric, value
  from {prefix}scores where not skipped and value is not null)
select {run}a.method, b.method as other, repeat, document_id, question_id, metric, a.value,
  b.value as other_value, a.value - b.value as difference
from valued a join valued b using ({run}repeat, document_id, question_id, metric)
where a.method <> b.method;

-- name: measures
select method, repeat, document_id, question_id, null::varchar as rater, problem,
  metric as measure, value
from scores where not skipped and value is not null;

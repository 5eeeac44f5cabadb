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
from scores where not skipped and value is not null
union all by name
-- An episode succeeds where all of its steps do; it stands with its first one.
select s.method, s.repeat, arg_min(document_id, step) as document_id,
  arg_min(question_id, step) as question_id, null::varchar as rater, null::varchar as problem,
  'mind2web_episode' as measure, min(value) as value
from (select *, metadata ->> '$.annotation_id' as episode,
    (metadata ->> '$.step')::bigint as step
  from questions) join (from scores where metric = 'mind2web_step' and value is not null) s
    using (document_id, question_id)
group by s.method, s.repeat, episode;

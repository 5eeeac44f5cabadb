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
with grouped as (
  -- Metrics whose mean is over groups of questions, such as the steps of an episode: the keys of
  -- the questions' metadata that name the group, and the number of its questions.
  select step_id, metric, settings ->> ('$.groups.' || metric || '[0]') as key,
    settings ->> ('$.groups.' || metric || '[1]') as size_key
  from (select step_id, settings, unnest(json_keys(settings, '$.groups')) as metric from steps))
select method, repeat, document_id, question_id, null::varchar as rater, problem,
  metric as measure, value
from scores anti join grouped using (step_id, metric) where not skipped and value is not null
union all by name
-- Each group stands with its first question.
select method, repeat, arg_min(document_id, place) as document_id,
  arg_min(question_id, place) as question_id, null::varchar as rater, null::varchar as problem,
  metric as measure,
  case when size_key is null then avg(value)
    when count(*) = any_value(size) then min(value) else 0 end as value
from (select s.*, size_key, metadata ->> ('$.' || key) as of_group,
    (metadata ->> ('$.' || size_key))::int as size, (document_id, question_id) as place
  from scores s join grouped using (step_id, metric) join questions using (document_id, question_id)
  where not s.skipped and value is not null)
group by method, repeat, metric, size_key, of_group;

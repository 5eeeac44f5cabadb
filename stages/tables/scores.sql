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
with corrected as (
  select document_id, question_id from questions where original_references is not null),
of_both as (
  select distinct left(metric, -len('_original')) as metric
  from scores semi join corrected using (document_id, question_id)
  where ends_with(metric, '_original')),
every as not materialized (
  -- Against the original references, too; those of a question that was not corrected are its own.
  select * replace (unnest(if(metric in (from of_both)
    and (document_id, question_id) not in (from corrected),
    [metric, metric || '_original'], [metric])) as metric)
  from scores),
steps as (
  select s.*, metadata ->> '$.annotation_id' as episode, (metadata ->> '$.step')::int as step,
    (metadata ->> '$.steps')::int as steps
  from questions join every s using (document_id, question_id)
  where metric like 'mind2web%' and value is not null)
select method, repeat, document_id, question_id, null::varchar as rater, problem,
  metric as measure, value
from every where not skipped and value is not null and metric not like 'mind2web%'
union all by name
-- Mind2Web's are means over episodes, each of which stands with its first step. An episode succeeds
-- where all of its steps do; one with a step that was not asked does not.
select method, repeat, document_id, question_id, null::varchar as rater, null::varchar as problem,
  measure, value
from (select method, repeat, arg_min(document_id, step) as document_id,
    arg_min(question_id, step) as question_id, metric, avg(value) as mean,
    case when count(*) = any_value(steps) then min(value) else 0 end as least
  from steps group by method, repeat, episode, metric)
cross join lateral (select metric as measure, mean as value
  union all select 'mind2web_episode', least where metric = 'mind2web_step');

-- name: tables
select table_name, list(column_name) as columns from information_schema.columns
where table_name in (select table_name from shards union values ('documents'), ('questions'))
  and table_name <> 'calls'
group by table_name order by table_name;

-- name: failed
create or replace temp table failed as
select stage, table_name, method, memory, problem, detail, question_id as question,
  document_id as document,
  -- "gist of page 3: truncated": the stage and problem that a consequence names
  if(problem = 'upstream', regexp_extract(detail, '^(\w+)[^:]*: ', 1), stage) as cause_stage,
  if(problem = 'upstream', regexp_extract(detail, ': (\w+)', 1), problem) as cause_problem
from ({parts}) where {where};

-- name: own_causes
-- What a consequence names is a cause where rows have it; else the consequence has the cause of its
-- document in the corpus, or of another row of the same question and method, or of the same
-- document.
create or replace temp table caused as
with own as (
  select distinct stage, problem from failed where problem <> 'upstream'),
bad as (
  select document, min(problem) as problem from failed
  where stage = 'corpus' and table_name = 'documents' group by document),
known as (
  select f.* replace (
      if(own.stage is null and bad.problem is not null, 'corpus', cause_stage) as cause_stage,
      if(own.stage is null, coalesce(bad.problem, cause_problem), cause_problem) as cause_problem),
    own.stage is not null or bad.problem is not null as is_known
  from failed f left join own on f.cause_stage = own.stage and f.cause_problem = own.problem
  left join bad on f.document = bad.document),
beside as (
  select question, method, document,
    min_by(struct_pack(s := cause_stage, p := cause_problem), problem = 'upstream') as cause
  from known where is_known group by all)
select k.* exclude (cause_stage, cause_problem, is_known),
  if(is_known, cause_stage, coalesce(b.cause.s, k.stage)) as cause_stage,
  if(is_known, cause_problem, coalesce(b.cause.p, k.problem)) as cause_problem
from known k left join beside b
  on not is_known and k.question is not distinct from b.question
  and k.method is not distinct from b.method and k.document is not distinct from b.document;

-- name: causes
with marked as (
  select *, problem <> 'upstream' or cause_problem = 'upstream' as is_own from caused)
select cause_stage as stage, cause_problem as problem, count(*) filter (is_own) as num_rows,
  count(*) filter (not is_own) as num_after,
  list_sort(list(distinct table_name)) as tables,
  list_sort(list(distinct coalesce(method, memory)) filter (coalesce(method, memory) is not null))
    as made_by,
  min(detail) filter (is_own) as detail,
  list_sort(list(distinct document) filter (document is not null)) as documents,
  list_sort(coalesce(list(distinct question) filter (question is not null), [])) as questions
from marked group by all order by num_rows + num_after desc, stage, problem;

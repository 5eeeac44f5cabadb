-- name: steps
-- Of a missing document that questions name there is only the name: it is no input of its own.
with names as (
  select count(distinct document_id) as n from documents d
  semi join (from questions where problem is not null) q using (document_id, detail)
  where d.problem is not null)
select r.stage, r.method, r.repeat, r.step_id,
  r.inputs - if(r.stage = 'documents', n, 0) as inputs, r.ok,
  r.problem - if(r.stage = 'documents', n, 0) as problem, r.skipped, r.not_done,
  r.calls, r.prompt_tokens, r.cached_tokens, r.reply_tokens, r.seconds
from runs r cross join names left join steps s using (step_id)
order by list_position(getvariable('stages'), r.stage), r.method nulls first, r.repeat;

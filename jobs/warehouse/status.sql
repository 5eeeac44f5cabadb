-- name: steps
-- Of a missing document that questions name there is only the name: it is no input of its own.
with names as (
  select count(distinct d.document_id) as n from documents d
  semi join questions q on q.document_id = d.document_id and q.detail = d.detail
  where d.problem is not null)
select r.stage, r.method, r.repeat, r.step_id,
  r.inputs - if(r.stage = 'documents', n, 0) as inputs, r.ok,
  r.problem - if(r.stage = 'documents', n, 0) as problem, r.skipped, r.not_done,
  r.calls, r.prompt_tokens, r.cached_tokens, r.reply_tokens, r.seconds
from runs r cross join names left join steps s using (step_id)
order by list_position(getvariable('stages'), r.stage), r.method nulls first, r.repeat;

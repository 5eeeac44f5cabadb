-- name: steps
-- Of a missing document that questions name there is only the name: it is no input of its own.
with names as (
  select count(distinct document_id) as n from documents d
  semi join (from questions where problem is not null) q using (document_id, detail)
  where d.problem is not null)
select stage, method, repeat, step_id, inputs - if(stage = 'documents', n, 0) as inputs, ok,
  problem - if(stage = 'documents', n, 0) as problem, skipped, not_done,
  calls, prompt_tokens, cached_tokens, reply_tokens, seconds
from runs cross join names where {part};

-- name: steps
select r.stage, r.method, r.repeat, r.step_id, r.inputs, r.ok, r.problem, r.skipped, r.not_done,
  r.calls, r.prompt_tokens, r.cached_tokens, r.reply_tokens, r.seconds
from runs r left join steps s using (step_id)
order by list_position(getvariable('stages'), r.stage), r.method nulls first, r.repeat;

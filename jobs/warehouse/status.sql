-- name: steps
select stage, method, repeat, step_id, inputs, ok, problem, skipped, not_done,
  calls, prompt_tokens, cached_tokens, reply_tokens, seconds
from runs where {part};

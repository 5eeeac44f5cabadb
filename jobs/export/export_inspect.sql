-- name: replies
select a.question_id, a.repeat, a.document_id, a.title, a.question, a.question_type, a.options,
  a."references", q.answer_index as right_index, a.answer as said, a.problem, a.detail,
  coalesce(a.options[a.answer_index + 1], a.answer) as text
from {source} a join questions q using (question_id)
where a.method = {method} order by a.document_id, a.question_id, a.repeat;

-- name: values
select question_id, repeat, measure, measure || coalesce(' by ' || rater, '') as name, value
from measures where method = {method} and value is not null order by name;

-- name: calls
select question_id, repeat, engine, sum(prompt_tokens)::bigint as prompt_tokens,
  sum(cached_tokens)::bigint as cached_tokens, sum(reply_tokens)::bigint as reply_tokens
from calls where method = {method} and question_id is not null and not is_shared
group by all order by all;

-- name: measures
with walks as (
  select method, repeat, document_id, question_id, max(problem) as problem,
    100.0 * (sum(num_replies) - sum(num_invalid)) / sum(num_replies) as valid_actions,
    100.0 * max((action is not distinct from 'revert')::int) as stray,
    sum(num_new_words) as words, count(*)::double as steps, max(depth)::double as depth
  from visits group by all having sum(num_replies) > 0)
select method, repeat, document_id, question_id, null::varchar as rater, problem,
  measure, value
from (select w.method, w.repeat, w.document_id, w.question_id,
    coalesce(w.problem, a.problem) as problem, valid_actions, stray, steps, depth,
    case when q.answer_index is not null and a.reader is not null then (a.problem is null
      and a.answer_index is not distinct from q.answer_index) end as is_right,
    case when stray > 0 then 100.0 * is_right::int end as recovery,
    100.0 * words / nullif(d.num_words, 0) as text_read,
    case when is_right then text_read end as text_read_right
  from walks w join documents d using (document_id)
    join questions q using (document_id, question_id)
    left join answers a using (method, repeat, document_id, question_id))
unpivot (value for measure in (
  columns(* exclude (method, repeat, document_id, question_id, problem, is_right))));

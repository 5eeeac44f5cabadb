-- name: corrections
-- What the corrections of the corpus came to; null of a run without any.
select count(original_question) as reworded,
  count(*) filter (original_references is not null) as new_references,
  count(*) filter (skipped) as left_out,
  count(*) filter (metadata ->> '$.correction' is not null and problem is not null) as unused
from questions
having reworded + new_references + left_out + unused > 0;

-- name: counted
select method, by_value, counted, sum(value)::bigint as value
from counts join chosen using (question_id) where rater is null or rater = {rater} group by all;

-- name: mine
create table mine (method varchar, repeat int, document_place int, question_place int,
  measure varchar, value double, is_answered bool, by_value varchar);

-- name: values
-- By a subquery, as DuckDB would take the values for fewer than the questions and hold them all.
select method, repeat::int as repeat, q.document_place, q.question_place, measure,
  value::double as value, problem is null as is_answered, q.by_value
from (select v.*, (select c from chosen c where c.question_id = v.question_id) as q
  from ({part}
  ) v where value is not null and (rater is null or rater = {rater}))
where q is not null;

-- name: fallbacks_of
-- Per method, not per question: all questions of a method use the same memories.
with fell_back as (
  select memory, sum(fell_back) as fell_back, sum(asked) as asked from fallbacks group by memory)
select method, 100 * sum(f.fell_back) / nullif(sum(f.asked), 0) as fallback
from rests_on join memories m using (memory) left join fell_back f using (memory)
group by method;

-- name: memories
from memories where pages is not null or calls > 0
order by not {is_shared}, memory;

-- name: corpus
select count(*) filter (not skipped) as documents, coalesce(sum(num_words), 0)::bigint as words
from documents where problem is null;

-- name: stages
-- Cached: prompt tokens found in the engine's prefix cache.
select stage, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens,
  sum(cached_tokens)::bigint as cached_tokens,
  100 * sum(cached_tokens) / nullif(sum(prompt_tokens), 0) as cached_share,
  sum(reply_tokens)::bigint as reply_tokens
from calls where not is_shared group by stage order by list_position([{stages}], stage);

-- name: tokens
-- Of contexts, over the answers that have a value of a measure and whose tokens were counted.
select s.method, s.by_value, s.measure, avg(t.value order by t.value) as mean, count(*) as n
from mine s join mine t using (method, repeat, question_place)
where t.measure = 'tokens_read' group by all;

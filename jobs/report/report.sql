-- name: chosen
-- The line breaks end a comment at the end of an expression.
create temp table chosen as
select question_id, document_place, row_number() over ()::int as question_place,
  (
{group}
)::varchar as by_value
from (select q.*, title, num_document_words, document_place
  from questions q join (
    select document_id, title, num_words as num_document_words,
      row_number() over (order by document_id)::int as document_place from documents)
    using (document_id) where q.problem is null)
where (
{condition}
);

-- name: raters
select distinct rater from raters order by rater;

-- name: kinds
-- The kinds of questions that the run has.
select bool_or(len(options) = 0 and len("references") > 0) as free,
  bool_or(len(options) > 0) as choice from questions;

-- name: answers
select * from (
  select p.*, q.* exclude (document_id, question_id, problem, detail),
    d.title, d.num_words as num_document_words
  from predictions p join questions q using (document_id, question_id)
  join documents d using (document_id))
where starts_with(method, {begins}) and ({condition}
);

-- name: sizes
select measure, memory, count(value) as n, avg(value) as mean, min(value) as min,
  quantile_cont(value, 0.25) as q1, median(value) as median, quantile_cont(value, 0.75) as q3,
  max(value) as max
from sizes group by measure, memory, rows_of order by min(place), not {is_shared}, memory;

-- name: counted
select method, by_value, counted, sum(value)::bigint as value
from counts join chosen using (question_id) where rater is null or rater = {rater} group by all;

-- name: of_documents
create table of_documents (method varchar, repeat int, measure varchar, by_value varchar,
  document_place int, n bigint, total double, answered_n bigint, answered_total double,
  is_of_all bool);

-- name: sums
-- is_of_all: whether each of the document's questions has a value.
-- By decimals, as the last digit of a sum of floats differs with their order; what decimals of this
-- size do not hold is summed in order.
insert into of_documents
with asked as (
  select by_value, document_place, count(*) as num_asked from chosen group by all),
summed as (
  select method, repeat, measure, by_value, document_place, count(*) as n, sum(exact) as total,
    list(value) filter (exact is null) as others,
    count(*) filter (is_answered) as answered_n, sum(exact) filter (is_answered) as answered_total,
    list(value) filter (exact is null and is_answered) as answered_others
  from (select *, case when value = 0 or abs(value) between 1e-3 and 1e15
      then value::decimal(38, 15) end as exact from ({values}))
  group by all)
select method, repeat, measure, s.by_value, s.document_place, n,
  coalesce(total, 0)::double + coalesce(list_sum(list_sort(others)), 0) as total, answered_n,
  coalesce(answered_total, 0)::double + coalesce(list_sum(list_sort(answered_others)), 0)
    as answered_total,
  n = num_asked as is_of_all
from summed s join asked a on a.document_place = s.document_place
  and a.by_value is not distinct from s.by_value;

-- name: mine
create view mine as {values};

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
from rests_on join run_memories m using (memory) left join fell_back f using (memory)
group by method;

-- name: run_memories
create temp table run_memories as from memories;

-- name: memories
from run_memories where pages is not null or calls > 0
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
from call_rows where not is_shared group by stage order by list_position([{stages}], stage);

-- name: token_sums
-- Tokens of contexts, over the answers that have a value of a measure and whose tokens were counted.
-- Where all questions of a document have a value, they are those that were counted.
create temp table token_sums as
select s.method, s.by_value, s.measure, s.repeat, s.document_place, s.is_of_all,
  t.n as num_read, t.total as num_tokens
from of_documents s
join of_documents t on t.measure = 'tokens_read' and t.method = s.method and t.repeat = s.repeat
  and t.document_place = s.document_place and t.by_value is not distinct from s.by_value;

-- name: tokens_of_some
insert into token_sums by name
select s.method, s.by_value, s.measure, true as is_of_all, count(*) as num_read,
  sum(t.value order by t.value) as num_tokens
from mine s
semi join token_sums p on not p.is_of_all and s.method = p.method and s.measure = p.measure
  and s.repeat = p.repeat and s.document_place = p.document_place
  and s.by_value is not distinct from p.by_value
join (from mine where measure = 'tokens_read') t using (method, repeat, question_place)
group by all;

-- name: tokens
select method, by_value, measure, sum(num_tokens order by num_tokens) / sum(num_read) as mean,
  sum(num_read)::bigint as n
from token_sums where is_of_all group by all;

-- name: rests
-- A row per method and step that makes its rows, or rows that these rest on.
create temp table rests as
with recursive below as (
  select distinct method, step_id from steps where method is not null
  union
  select b.method, unnest(s.upstream) from below b join steps s using (step_id))
from below;

-- name: calls_of_methods
select method, by_value, step_id, stage in ({judging}) as is_judging, {sums}
from call_rows join chosen using (question_id) where method is not null and not is_shared group by all;

-- name: engines
select distinct engine, step_id from call_rows where not is_shared order by all;

-- name: calls_of_memories
with spent as (
  select coalesce(memory, '-') as memory, stage, step_id, {sums}
  from call_rows where method is null and not is_shared group by all)
select s.*, coalesce(list(method order by method) filter (method is not null), []) as methods
from spent s left join rests using (step_id) group by all order by memory, stage, step_id;

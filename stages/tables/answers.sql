-- name: predictions
create view {prefix}predictions as
-- A method's answer to each question, without the text that it read.
-- answer: as the model gave it; null: none
-- answer_index: the option chosen
-- judged: the whole reply, where raters see that; null: they see the answer
select {run}method, repeat, document_id, question_id, answer, answer_index, problem, detail, judged
from {prefix}answers where not skipped;

-- name: readings
create view {prefix}readings as
-- The raw text of the document that each answer's final context held.
-- spans: half-open, characters of the document's text
select {run}method, repeat, document_id, question_id, context_spans as spans
from {prefix}answers where not skipped;

-- name: measures
select method, repeat, document_id, question_id, null::varchar as rater, problem,
  measure, value
from (select method, repeat, document_id, question_id, problem, compression_rate,
    num_context_words::double as words_read, num_context_tokens::double as tokens_read,
    case when num_context_words is not null then num_lookups::double end as lookups,
    case when answer is not null then num_answer_words::double end as length
  from answers where not skipped)
unpivot (value for measure in (
  columns(* exclude (method, repeat, document_id, question_id, problem))));

-- name: counts
select method, document_id, question_id, null::varchar as rater, counted, value
from (select method, document_id, question_id, 1 as n, (problem is null)::int as answered
  from answers where not skipped)
unpivot (value for counted in (n, answered));

-- name: traced
-- pages_read: those whose raw text was in the context.
select a.*, q.answer_index = a.answer_index as is_right, coalesce((
  select list({'page_index': page_index, 'text': text} order by page_index) from pages p
  where p.memory = a.memory and p.document_id = a.document_id
    and list_contains(a.page_indexes, p.page_index)), []) as pages_read
from answers a join questions q using (document_id, question_id);

-- name: results
select method, repeat, memory, document_id, question_id, answer, answer_index,
  page_indexes, num_context_words, num_context_tokens, problem, detail
from answers where not skipped;

-- name: question
select q.*, d.title, d.num_words as document_words,
  list_transform(evidence, lambda s: substring(d.text, s.start_char + 1, s.end_char - s.start_char))
    as evidence_texts
from questions q left join documents d using (document_id) where question_id = getvariable('question');

-- name: tables
-- The tables that each stage of the run wrote, in the order of the stages.
with columns as (
  select table_name, bool_or(column_name = 'question_id') as per_question
  from information_schema.columns group by table_name)
select distinct s.stage, table_name, per_question
from shards semi join units using (step_id, unit) join steps s using (step_id)
join columns using (table_name) where table_name not in ('documents', 'questions', 'calls')
order by list_position(getvariable('stages'), s.stage), table_name;

-- name: rests_on
select distinct memory from rests_on where list_contains(getvariable('methods'), method)
order by memory;

-- name: question_id
from calls where question_id in (select unnest(getvariable('asked_about')))
order by list_position(getvariable('stages'), stage), method, repeat, step_id, unit, call_index;

-- name: document_id
from calls where document_id in (select unnest(getvariable('asked_about'))) and method is null
  and question_id is null
order by list_position(getvariable('stages'), stage), memory, step_id, unit, call_index;

-- name: mapped
select document_id, evidence, coalesce(length(d.text), 0) as num_chars
from questions q left join documents d using (document_id)
where question_id in (select unnest(getvariable('questions')));

-- name: page_spans
select document_id, memory, list({page_index: page_index, start_char: start_char, end_char: end_char}
  order by page_index) as spans
from page_spans where document_id in (select unnest(getvariable('documents')))
group by all order by memory;

-- name: readings
select question_id, method, repeat, spans from readings
where question_id in (select unnest(getvariable('questions'))) order by method, repeat;

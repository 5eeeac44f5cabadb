-- What the page shows: the documents, all of them or those of a subset's questions; the questions in
-- the table `chosen`; per question, method and measure the mean over repeats.

-- name: numbered_documents
create temp table numbered_documents as
select (row_number() over (order by document_id) - 1)::int as number, document_id, title, num_words,
  problem, skipped
from documents {where};

-- name: numbered_questions
create temp table numbered_questions as
select (row_number() over (order by d.number, question_id) - 1)::int as number, question_id,
  d.number as document, question_type,
  left(question, {shown_chars}) || if(length(question) > {shown_chars}, ' …', '') as question
from questions semi join chosen using (question_id)
join numbered_documents d using (document_id);

-- name: valued
create temp table valued as
select measure, method, number, round(avg(value), 2) as value
from measures join numbered_questions using (question_id)
where value is not null and (rater is null or rater = getvariable('rater')) group by all;

-- name: measures
select distinct measure from valued order by measure;

-- name: values
with of_measure as (from valued where measure = getvariable('measure'))
select method, list(value order by number) as in_order
from (select distinct method from of_measure) cross join numbered_questions
left join of_measure using (method, number) group by method order by method;

-- name: documents
select document_id, title, num_words, length(text) as num_chars, problem, detail
from documents
where document_id in (select unnest(getvariable('documents')));

-- name: questions
select question_id, question, options, "references", answer_index, question_type, evidence,
  asked_at, q.problem, q.detail, q.metadata,
  list_transform(evidence, lambda s: substring(d.text, s.start_char + 1, s.end_char - s.start_char))
    as evidence_texts
from questions q join documents d using (document_id)
where question_id in (select unnest(getvariable('questions')));

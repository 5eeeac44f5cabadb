-- name: documents
create temp table numbered_documents as
select (row_number() over (order by document_id) - 1)::int as number, document_id, title, num_words,
  problem, skipped
from documents {where};

-- name: questions
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

-- name: values
with found as (from valued where measure = getvariable('measure'))
select method, list(value order by number) as found
from (select distinct method from found) cross join numbered_questions
left join found using (method, number) group by method order by method;

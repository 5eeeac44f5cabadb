-- name: question
select document_id, evidence, coalesce(length(d.text), 0) as num_chars
from questions q left join documents d using (document_id) where question_id = getvariable('question');

-- name: page_spans
select document_id, memory, list({page_index: page_index, start_char: start_char, end_char: end_char}
  order by page_index) as spans
from page_spans where document_id in (select unnest(getvariable('documents')))
group by all order by memory;

-- name: readings
select question_id, method, repeat, spans from readings
where question_id in (select unnest(getvariable('questions'))) order by method, repeat;

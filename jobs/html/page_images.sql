-- name: of
select number, metadata from documents join numbered_documents using (document_id)
where contains(metadata, '"page_starts"');

-- name: text
select text, metadata from documents join numbered_documents using (document_id)
where number = getvariable('number');

-- name: used
with used as (
  select document_id, 0 as rank, unnest(evidence) as span
  from questions semi join numbered_questions using (question_id)
  union all
  select q.document_id, 1, unnest(r.spans)
  from readings r join questions q using (question_id)
  semi join numbered_questions using (question_id))
select number, span.start_char as start_char, span.end_char as end_char
from used join numbered_documents using (document_id)
semi join (from documents where contains(metadata, '"page_starts"')) using (document_id)
order by rank, number, start_char;

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

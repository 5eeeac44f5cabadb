-- name: rows
select * from (
  select p.*, q.* exclude (document_id, question_id, problem, detail),
    d.title, d.num_words as num_document_words
  from predictions p join questions q using (document_id, question_id)
  join documents d using (document_id))
where starts_with(method, '{begins}') and ({condition}
);

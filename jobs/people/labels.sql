-- name: of_rows
select * from (
  select {row}, method, repeat, document_id, question_id, sha256(answer) as answer_sha
  from {source} where {labelled})
where row in ({ids});

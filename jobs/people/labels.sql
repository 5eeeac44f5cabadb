-- name: of_rows
select * from (
  select {row}, method, repeat, document_id, question_id, sha256(answer) as answer_sha
  from {source} where {labelled})
where row in ({ids});

-- name: drawn
with drawn as (
  select {row}, question, "references", answer, method,
    md5(concat_ws(chr(31), {seed}, method, repeat, document_id, question_id)) as draw
  from {source} where {labelled}),
placed as (
  select *, row_number() over (partition by method order by draw, row) as place from drawn)
select row, question, "references", answer
from (select * from placed order by place, draw limit {n}) order by draw;

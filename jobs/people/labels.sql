-- What a person can judge: free-form answers to questions with references. The id of an answer says
-- nothing, and changes with its text; it begins with a letter, so that no spreadsheet makes a number
-- of it.
-- name: labelled
select *, 'r' || left(sha256(concat_ws(
  chr(31), method, repeat, document_id, question_id, answer)), 15) as row
from {source}
where len(options) = 0 and len("references") > 0 and problem is null and answer is not null;

-- name: of_rows
select row, method, repeat, document_id, question_id, sha256(answer) as answer_sha
from ({labelled}) where row in (select unnest(getvariable('sheet_rows')));

-- name: drawn
with drawn as (
  select row, question, "references", answer, method,
    md5(concat_ws(chr(31), {seed}, method, repeat, document_id, question_id)) as draw
  from ({labelled})),
placed as (
  select *, row_number() over (partition by method order by draw, row) as place from drawn)
select row, question, "references", answer
from (select * from placed order by place, draw limit {n}) order by draw;

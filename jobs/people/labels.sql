-- The answers that a person can judge: free-form ones to questions with references. The id of an
-- answer says nothing, and changes with its text; it begins with a letter, as a spreadsheet would
-- make a number of it otherwise.
-- name: labeled
select *, 'r' || left(sha256(concat_ws(
  chr(31), method, repeat, document_id, question_id, answer)), 15) as row
from {source}
where len(options) = 0 and len("references") > 0 and problem is null and answer is not null;

-- name: of_rows
select row, method, repeat, document_id, question_id, sha256(answer) as answer_sha
from ({labeled}) where row in (select unnest(getvariable('sheet_rows')));

-- name: drawn
with drawn as (
  select row, question, "references", answer, method,
    md5(concat_ws(chr(31), {seed}, method, repeat, document_id, question_id)) as draw
  from ({labeled})),
placed as (
  select *, row_number() over (partition by method order by draw, row) as place from drawn)
select row, question, "references", answer
from (select * from placed order by place, draw limit {n}) order by draw;

-- name: labels
select p.*, a.problem is null and sha256(a.answer) is not distinct from p.answer_sha as is_current
from people p left join predictions a using (method, repeat, document_id, question_id);

-- name: counts
select count(*) as labels, count(*) filter (not is_current) as outdated from ({labels});

-- name: pairs
with current as (from ({labels}) where is_current),
pairs as (
  select c.rater as person, v.rater as other, rubric, has_partially, c.label as mine,
    v.label as theirs
  from current c join verdicts v using (method, repeat, document_id, question_id)
  union all by name
  select c.rater as person, o.rater as other, null as rubric, true as has_partially,
    c.label as mine, o.label as theirs
  from current c join current o using (method, repeat, document_id, question_id)
  where c.rater < o.rater)
select *, count(*) as n from pairs group by all
order by person, other, rubric nulls first, mine, theirs;

-- name: labels
select p.*, a.problem is null and sha256(a.answer) is not distinct from p.answer_sha as is_current
from people p left join predictions a using (method, repeat, document_id, question_id);

-- name: counts
select count(*) as labels, count(*) filter (not is_current) as outdated from ({labels}) {chosen};

-- name: pairs
with current as (
  from ({labels}) semi join {source} using (method, repeat, document_id, question_id)
  where is_current),
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

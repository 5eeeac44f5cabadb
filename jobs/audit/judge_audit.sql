-- name: verdicts
-- Of an audit: the raters' verdicts on known answers, without verdicts that could not be read.
select rater, measure, method, question_id, value > 0 as is_accepted from measures
where rater is not null and problem is null and value is not null and measure in ({measures});

-- name: sampled
select count(distinct question_id) as n from predictions;

-- name: labeled
-- Of a run: the verdicts on answers that a person has labeled as they are now.
select p.rater as person, m.measure, p.label, m.question_id, m.value > 0 as is_accepted
from people p join predictions a using (method, repeat, document_id, question_id)
join measures m using (method, repeat, document_id, question_id)
where a.problem is null and sha256(a.answer) = p.answer_sha and m.value is not null
  and m.rater = {rater} and m.measure in ({measures})
order by person, list_position(['yes', 'partially', 'no'], label);

-- name: judged
-- Of a run: what the rater accepted, by document. Answers with a problem, which it did not see,
-- are wrong, and in `n` alone.
select method, by_value, measure, document_id, count(*) as n,
  count(*) filter (m.problem is null) as answered,
  sum(value / 100) filter (m.problem is null) as accepted
from measures m join chosen using (question_id)
where value is not null and m.rater = {rater} and measure in ({measures})
group by all order by all;

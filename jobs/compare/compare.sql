-- name: valued
-- Repeats are averaged per question, in order: else a sum's last digit differs from look to look.
create temp table valued as
select method, measure, by_value, document_id, question_id, avg(value order by value) as value
from measures m join chosen using (question_id)
where value is not null and (rater is null or rater = getvariable('rater')) group by all;

-- name: values
-- Questions of two runs are the same where the same is asked.
select v.document_id, question_id, value, md5(to_json(
    [question, options::varchar, "references"::varchar, answer_index::varchar])) as content
from valued v join questions using (question_id)
where method = getvariable('method') and measure = getvariable('metric')
  and by_value is not distinct from getvariable('by_value');

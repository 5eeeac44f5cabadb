-- name: questions
select count(*) as questions from questions where problem is null;

-- name: raters
select rater, rater_is_model as is_model, rubric, count(*) as n,
  count(*) filter (label is null) as unscored
from verdicts group by all order by rater, rubric;

-- name: engines
select stage, engine, list(distinct prompts order by prompts) as prompts
from steps where engine is not null and engine <> 'null' group by stage, engine order by all;

-- name: fallback
select memory, sum(asked)::bigint as asked, sum(fell_back)::bigint as fell_back
from fallbacks group by memory order by memory;

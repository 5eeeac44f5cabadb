-- name: pairs
create or replace temp table pairs as
select unnest(range(?::int)) as number, unnest(?::varchar[]) as by_value,
  unnest(?::varchar[]) as measure, unnest(?::varchar[]) as leader, unnest(?::varchar[]) as method;

-- name: paired_sums
-- The leader's values less those of the method, summed over each document's answers of both.
create or replace temp table paired_sums as
select number, ahead.document_place, ahead.repeat,
  ahead.is_of_all and rival.is_of_all as is_of_all, ahead.total - rival.total as difference
from pairs p
join of_documents ahead on ahead.method = p.leader and ahead.measure = p.measure
  and ahead.by_value is not distinct from p.by_value
join of_documents rival on rival.method = p.method and rival.measure = p.measure
  and rival.by_value is not distinct from p.by_value
  and rival.document_place = ahead.document_place and rival.repeat = ahead.repeat;

-- name: paired_values
-- The same where not all questions of a document have a value of both.
insert into paired_sums
select s.number, s.document_place, s.repeat, true as is_of_all,
  sum(ahead.value - rival.value order by ahead.question_place) as difference
from paired_sums s join pairs p using (number)
join mine ahead on ahead.method = p.leader and ahead.measure = p.measure
  and ahead.repeat = s.repeat and ahead.document_place = s.document_place
  and ahead.by_value is not distinct from p.by_value
join mine rival on rival.method = p.method and rival.measure = p.measure
  and rival.question_place = ahead.question_place and rival.repeat = ahead.repeat
where not s.is_of_all group by all;

-- name: differences
with of_both as (
  select number, document_place, sum(difference order by repeat) as difference
  from paired_sums where is_of_all group by all)
select number, list(difference order by document_place) as differences
from of_both where abs(difference) > 1e-9 group by number;

-- name: pairs
create or replace temp table pairs as
select unnest(range(?::int)) as place, unnest(?::varchar[]) as by_value,
  unnest(?::varchar[]) as measure, unnest(?::varchar[]) as leader, unnest(?::varchar[]) as method;

-- name: paired_sums
-- The leader's values less those of the method, summed over each document's answers of both.
create or replace temp table paired_sums as
select place, own.document_place, own.repeat, own.is_of_all and other.is_of_all as is_of_all,
  own.total - other.total as difference
from pairs p
join of_documents own on own.method = p.leader and own.measure = p.measure
  and own.by_value is not distinct from p.by_value
join of_documents other on other.method = p.method and other.measure = p.measure
  and other.by_value is not distinct from p.by_value
  and other.document_place = own.document_place and other.repeat = own.repeat;

-- name: paired_values
-- The same where not all questions of a document have a value of both.
insert into paired_sums
select s.place, s.document_place, s.repeat, true as is_of_all,
  sum(own.value - other.value order by own.question_place) as difference
from paired_sums s join pairs p using (place)
join mine own on own.method = p.leader and own.measure = p.measure and own.repeat = s.repeat
  and own.document_place = s.document_place and own.by_value is not distinct from p.by_value
join mine other on other.method = p.method and other.measure = p.measure
  and other.question_place = own.question_place and other.repeat = own.repeat
where not s.is_of_all group by all;

-- name: differences
with of_both as (
  select place, document_place, sum(difference order by repeat) as difference
  from paired_sums where is_of_all group by all)
select place, list(difference order by document_place) as differences
from of_both where abs(difference) > 1e-9 group by place;

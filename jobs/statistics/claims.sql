-- name: pairs
create or replace temp table pairs as
select unnest(range(?::int)) as place, unnest(?::varchar[]) as by_value,
  unnest(?::varchar[]) as measure, unnest(?::varchar[]) as leader, unnest(?::varchar[]) as method;

-- name: differences
-- The leader's values less those of the method, summed over each document's answers of both.
with of_documents as (
  select place, own.document_place, sum(own.value - other.value) as difference
  from pairs p
  join mine own on own.method = p.leader and own.measure = p.measure
    and own.by_value is not distinct from p.by_value
  join mine other on other.method = p.method and other.measure = p.measure
    and other.question_place = own.question_place and other.repeat = own.repeat
  where abs(own.value - other.value) > 1e-9 group by place, own.document_place)
select place, list(difference order by document_place) as differences
from of_documents group by place;

-- name: pairs
create or replace temp table pairs as
select unnest(range(?::int)) as place, unnest(?::varchar[]) as by_value,
  unnest(?::varchar[]) as measure, unnest(?::varchar[]) as leader, unnest(?::varchar[]) as method;

-- name: differences
-- The leader's sums less those of the method, over the documents of both.
with of_both as (
  select place, own.document_place, sum(own.total - other.total order by own.repeat) as difference
  from pairs p
  join of_documents own on own.method = p.leader and own.measure = p.measure
    and own.by_value is not distinct from p.by_value
  join of_documents other on other.method = p.method and other.measure = p.measure
    and other.by_value is not distinct from p.by_value
    and other.document_place = own.document_place and other.repeat = own.repeat
  group by all)
select place, list(difference order by document_place) as differences
from of_both where abs(difference) > 1e-9 group by place;

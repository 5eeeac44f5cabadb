-- In order: the last digit of a sum of floats would differ from one look to the next.
-- name: overall
with of_measures as (from of_documents where measure in ({measures})),
of_both as (
  select measure, method, by_value, document_place, sum(total order by repeat) as total,
    sum(n)::bigint as n, sum(answered_total order by repeat) as answered_total,
    sum(answered_n)::bigint as answered_n
  from of_measures group by all),
overall as (
  select measure, method, by_value, sum(total order by document_place) / sum(n) as mean,
    sum(n)::bigint as n, sum(answered_n)::bigint as answered_n,
    sum(answered_total order by document_place) / nullif(sum(answered_n), 0) as answered_mean,
    list(total order by document_place) as sums, list(n order by document_place) as counts
  from of_both group by all),
of_repeats as (
  select measure, method, by_value, list(mean order by repeat) as repeats
  from (select measure, method, by_value, repeat, sum(total order by document_place) / sum(n) as mean
    from of_measures group by all)
  group by all)
select o.*, repeats from overall o
join of_repeats r on o.measure = r.measure and o.method = r.method
  and o.by_value is not distinct from r.by_value
order by o.measure, o.method, o.by_value;

-- name: of_means
with means as (
  select method, by_value, {group}, avg(value order by value) as mean, count(*) as n,
    avg(value order by value) filter (is_answered) as answered_mean,
    count(*) filter (is_answered) as answered_n
  from mine join (select q.*, question_place from questions q join chosen using (question_id))
    using (question_place) where measure = {measure} group by all)
select method, by_value, avg(mean order by mean) as mean, sum(n)::bigint as n,
  avg(answered_mean order by answered_mean) as answered_mean, sum(answered_n)::bigint as answered_n
from means group by method, by_value;

-- name: of_means_per_repeat
with means as (
  select method, by_value, repeat, {group}, avg(value order by value) as mean
  from mine join (select q.*, question_place from questions q join chosen using (question_id))
    using (question_place) where measure = {measure} group by all)
select method, by_value, repeat, avg(mean order by mean) as mean
from means group by all order by repeat;
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

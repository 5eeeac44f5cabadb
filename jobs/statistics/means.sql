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
    using (question_place) where measure = '{measure}' group by all)
select method, by_value, avg(mean order by mean) as mean, sum(n)::bigint as n,
  avg(answered_mean order by answered_mean) as answered_mean, sum(answered_n)::bigint as answered_n
from means group by method, by_value;

-- name: of_means_per_repeat
with means as (
  select method, by_value, repeat, {group}, avg(value order by value) as mean
  from mine join (select q.*, question_place from questions q join chosen using (question_id))
    using (question_place) where measure = '{measure}' group by all)
select method, by_value, repeat, avg(mean order by mean) as mean
from means group by all order by repeat;

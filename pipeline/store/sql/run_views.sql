-- name: all_units
create view all_units as
-- When each unit was begun and by which worker, from the footers of its step's shards; null where
-- an earlier version wrote them.
with made as (
  select parse_path(file_name)[-2] as step_id,
    split_part(parse_filename(file_name), '.', 1) as unit,
    max(decode(value)) filter (decode(key) = '{started_at}')::timestamp as started_at,
    max(decode(value)) filter (decode(key) = '{worker}') as worker
  from footers group by all)
select * from all_planned left join made using (step_id, unit);

-- name: files
select table_name, file, sum(num_rows)::bigint as num_rows from index_rows
where file in (
  select file from index_rows anti join superseded_rows using (table_name, step_id, unit, attempt)
  where num_rows > 0)
group by all order by all;

-- name: loose
select count(*) as shards from shards_rows;

-- name: counting
from read_parquet({files}, union_by_name = true, filename = true) r
semi join (select distinct {key} from all_planned where {planned}) u on {same}
anti join superseded_rows s on s.table_name = {table}
  and s.step_id = r.step_id and s.unit = r.unit and s.attempt = r.shard_attempt;

-- name: per_file
select filename, count(*) as num_rows from ({rows}) group by all;

-- name: others
select * exclude (filename) from ({rows}) where filename in {files};

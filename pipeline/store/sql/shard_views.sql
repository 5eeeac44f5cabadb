-- name: shards
create view raw_shards as from shards_rows union all
select table_name, step_id, unit from index_rows anti join superseded_rows using ({key})
where table_name in ({tables});

-- name: footers
create view footers as
-- A row per key in the footer of a shard's file.
-- file_name: the shard's path in the warehouse
-- key: the key, as bytes
-- value: the value, as bytes
select concat_ws('/', 'tables', table_name, step_id, unit || '.' || attempt || '.parquet')
  as file_name, encode(pair.key) as key, encode(pair.value) as value
from (select table_name, step_id, unit, attempt, unnest(map_entries(footer)) as pair
  from index_rows anti join superseded_rows using ({key})
  where table_name <> 'calls');

-- name: call_bytes
create view call_bytes as
-- The compressed size of the table calls, of the whole warehouse.
-- bytes: of all columns
-- prompt_bytes: of `messages`, what was sent
with no_columns as (select 0 as total_compressed_size, '' as path_in_schema where false)
select coalesce(sum(total_compressed_size), 0)::bigint as bytes,
  coalesce(sum(total_compressed_size) filter (path_in_schema like 'messages%'), 0)::bigint
    as prompt_bytes
from {columns};

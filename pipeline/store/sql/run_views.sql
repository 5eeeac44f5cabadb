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

-- name: units
create view units as
-- A row per input that the run planned, with when and by whom its unit was made.
-- run: the run's name
-- started_at: UTC; when the unit was begun; null where it is not committed
-- worker: host and process that made the unit
from all_units where run = {run};

-- name: planned
create view planned as
-- A row per input that the run planned: a document or a question of a step.
-- run: the run's name
from all_planned where run = {run};

-- name: people
create view people as
-- A row per answer that a person labelled.
-- run: the run's name
-- rater: human:NAME
-- answer_sha: sha256 of the answer's text as it was then
-- label: yes, partially or no
-- comment: what the person wrote beside it
from all_people where run = {run};

-- name: steps
create view steps as
-- A row per step of the run: what made its rows.
-- stage: the stage that the step is of
-- version: of the stage; raised when its rows change meaning
-- settings: JSON: the stage's settings, which are hashed into `step_id`
-- engine: JSON: the identity of the engine that the stage asks
-- prompts: JSON: the hash of the template of each prompt that it asks
-- upstream: the steps whose rows it reads
from raw_steps semi join planned using (step_id);

-- name: shards
create view shards as
-- A row per committed shard of the run.
-- table_name: the table it is of
from raw_shards semi join planned using (step_id, unit);

-- name: all_of_key
create view all_{view} as select u.run, r.* from raw_{view} r
left join (select distinct run, {key} from all_planned) u using ({key});

-- name: left_out
create view left_out as
-- Damaged files that no view shows.
-- file: its path
-- why: what is wrong with it
from left_out_rows;

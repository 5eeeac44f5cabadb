-- The views that commands read. Braces stand for what connect.py fills in.

-- name: all_units
create view all_units as
-- When each unit was begun and by which worker, from the footers of its step's shards; null where
-- an earlier version wrote them.
with begun as (
  select parse_path(file_name)[-2] as step_id,
    split_part(parse_filename(file_name), '.', 1) as unit,
    max(decode(value)) filter (decode(key) = '{started_at}')::timestamp as started_at,
    max(decode(value)) filter (decode(key) = '{worker}') as worker
  from footers group by all)
select * from all_planned left join begun using (step_id, unit);

-- name: units
create view units as
-- A row per input that the run planned, with when and by whom its unit was made.
-- run: the run's name
-- started_at: UTC; when the unit was begun; null where it is not committed
-- worker: host and process that made the unit
from all_units where run = {name};

-- name: planned
create {kind} planned as
-- A row per input that the run planned: a document or a question of a step.
-- run: the run's name
from all_planned where run = {name};

-- name: people
create view people as
-- A row per answer that a person labeled.
-- run: the run's name
-- rater: human:NAME
-- answer_sha: sha256 of the answer's text as it was then
-- label: yes, partially or no
-- comment: what the person wrote beside it
from all_people where run = {name};

-- name: steps
create view steps as
-- A row per step of the run: what made its rows.
-- stage: the stage that the step is of
-- version: of the stage; raised when its rows change meaning
-- settings: JSON: the stage's settings, which are hashed into `step_id`
-- engine: JSON: the identity of the engine that the stage asks
-- prompts: JSON: the hash of the template of each prompt that it asks
-- upstream: the steps whose rows it reads
from raw_steps where step_id in (select distinct step_id from planned);

-- name: shards
create view shards as
-- A row per committed shard of the run.
-- table_name: the table it is of
from raw_shards semi join (select distinct step_id, unit from planned) using (step_id, unit);

-- name: all_of_key
create view all_{view} as select u.run, r.* from raw_{view} r
left join (select distinct run, {key} from all_planned) u using ({key});

-- name: call_rows
create {kind} call_rows as
-- The calls without the prompts, which take most of their memory; of a small warehouse a table.
select * exclude (messages) from calls;

-- name: left_out
create view left_out as
-- Damaged files that no view shows.
-- file: its path
-- why: what is wrong with it
from left_out_rows;

-- name: inputs
create view {prefix}inputs as
-- A row per planned input of the run, a document or a question of a step.
-- question_id: null where the input is a document
-- not_done: whether it is not committed yet
-- has_rows: whether its step's table has rows of it
-- problem: of its rows; where there are several, the first by name
-- skipped: whether the step does not apply to it
-- Joined by hashes, of 128 bits within a step, which take less memory than ids.
with outcomes as ({outcomes})
select {run}u.step_id, u.unit, u.document_id, u.question_id,
  u.not_done, o.step_id is not null as has_rows, o.problem, o.skipped
from {prefix}planned_done_rows u left join outcomes o on u.step_id = o.step_id
  and hash(u.unit) = o.of_unit and hash(u.document_id, u.question_id) = o.of_input;

-- name: planned_done
create view {prefix}planned_done_rows as
select *, (hash(step_id), hash(unit)) not in (
  select hash(step_id), hash(unit) from {rows_of}shards where table_name <> 'calls') as not_done
from {prefix}planned;

-- name: outcomes
select '{table}' as table_name, step_id, hash(unit) as of_unit,
  hash(document_id, {question}) as of_input, {skipped} as skipped, min(problem) as problem
from raw_{table} group by all;

-- name: accounting
create view {prefix}accounting as
-- A row per step of the run: what became of its inputs.
-- inputs: documents or questions that the step was planned for
-- ok: of them, those with rows and no problem
-- problem: of them, those with a problem row
-- skipped: of them, those that the step does not apply to
-- not_done: of them, those that are not committed yet
-- problems: the problem codes, and how many inputs have each
with counted as (
  select {run}step_id, not_done, has_rows, skipped, problem, count(*) as n from {prefix}inputs
  group by all)
select {run}step_id, sum(n)::bigint as inputs,
  coalesce(sum(n) filter (has_rows and problem is null and not skipped), 0)::bigint as ok,
  coalesce(sum(n) filter (has_rows and problem is not null), 0)::bigint as problem,
  coalesce(sum(n) filter (has_rows and problem is null and skipped), 0)::bigint as skipped,
  coalesce(sum(n) filter (not_done), 0)::bigint as not_done,
  list({'problem': problem, 'inputs': n}) filter (problem is not null) as problems
from counted group by {run}step_id;

-- name: runs
create view runs as
-- A row per step of the run: its accounting, and what it cost.
-- run: the run's name
-- inputs: documents or questions that the step was planned for
-- ok: of them, those with rows and no problem
-- problem: of them, those with a problem row
-- skipped: of them, those that the step does not apply to
-- not_done: of them, those that are not committed yet
-- problems: the problem codes, and how many inputs have each
-- calls: model calls, without those that were copied (`is_shared`)
-- prompt_tokens: tokens of the prompts, counted by the engine
-- cached_tokens: of the prompts' tokens, those that the engine had in its cache
-- reply_tokens: tokens of the replies, counted by the engine
-- seconds: the sum of the calls' seconds, which overlap
-- stage: the stage that the step is of
-- version: of the stage; raised when its rows change meaning
-- settings: JSON: the stage's settings, which are hashed into `step_id`
-- engine: JSON: the identity of the engine that the stage asks
-- prompts: JSON: the hash of the template of each prompt that it asks
-- upstream: the steps whose rows it reads
with cost as (
  select step_id, count(*) as calls, sum(prompt_tokens) as prompt_tokens,
    sum(cached_tokens) as cached_tokens, sum(reply_tokens) as reply_tokens,
    sum(seconds) as seconds
  from call_rows where not is_shared group by step_id)
select (select any_value(run) from planned) as run, s.stage, s.method, s.repeat, a.*,
  coalesce(c.calls, 0) as calls, coalesce(c.prompt_tokens, 0) as prompt_tokens,
  coalesce(c.cached_tokens, 0) as cached_tokens, coalesce(c.reply_tokens, 0) as reply_tokens,
  coalesce(c.seconds, 0) as seconds
from accounting a left join steps s using (step_id) left join cost c using (step_id);

-- name: answered_by
create view answered_by as
-- A row per engine that was asked and model that answered, as its server named it.
-- engine: the engine and model that were asked
-- answered_by: the model
-- calls: how many it answered
-- is_other: whether it is not the one that was asked for, or not the only one
with named as (
  select engine, answered_by, count(*) as calls from call_rows
  where answered_by is not null and not is_shared group by all)
select *, answered_by <> substr(engine, strpos(engine, ':') + 1)
  or count(*) over (partition by engine) > 1 as is_other
from named;

-- name: rests_on
create view rests_on as
-- A row per method and memory that its rows refer to.
with of_run as (select distinct step_id from planned)
select distinct method, memory from ({methods}) where method is not null and memory is not null;

-- name: memories
create view memories as
-- A row per memory, the pages of a pagination and all that is based on them.
-- documents: documents of the corpus
-- words: their words
-- calls: model calls that made the memory, without copied ones
-- tokens: tokens of those calls' prompts and replies, counted by the engine
with cost as (
  select memory, count(*) as calls, sum(prompt_tokens + reply_tokens)::bigint as tokens
  from call_rows where method is null and not is_shared group by memory),
corpus as (
  select count(*) filter (not skipped) as documents, coalesce(sum(num_words), 0)::bigint as words
  from documents where problem is null)
select * replace (coalesce(calls, 0) as calls, coalesce(tokens, 0) as tokens)
from (select distinct memory from ({indexes})) cross join corpus
{joins} left join cost using (memory);

-- name: measures
create view measures as
-- Every value that a report takes a mean of, per question. Shares and metrics are 0-100.
-- rater: the rater that the value is of; null for values that need none
-- problem: the answer's problem code; its value counts as it stands here
-- measure: what is measured
-- value: the value; its unit is the measure's
{parts};

-- name: sizes
create view sizes as
-- The samples whose distributions `report --corpus` shows.
-- memory: the memory that the sample is of; null for the corpus
-- measure: what is measured, with its unit
-- rows_of: what a row is of, in the plural
-- place: the measure's position in the report
-- value: the value
{parts};

-- name: counts
create view counts as
-- Values that reports add up, per question.
-- rater: the rater that the count is of; null for counts that need none
-- counted: what is counted: n, answered or unscored
-- value: 1 or 0
{parts};

-- name: page_texts
create view page_texts as
-- What `gistmill show` prints: a row per page and text of it, and per text of several.
-- page_index: of the page, or the first of several
-- last_page_index: the last page of a text of several; null: it is of one page
-- place: the text's position beside the others
-- heading: what the text is, as `gistmill show` heads it
-- text: the text; null: there is none
-- num_words: words of the text
{parts};

-- name: results
create view results as
-- What methods reply to questions.
-- answer: as the model gave it; null: none
-- answer_index: the option chosen
-- page_indexes: pages read, in document order
-- num_context_words: words in the final context
-- num_context_tokens: the reader's tokens in the final context; null: not counted
{parts};

-- name: raw_shards
create view raw_shards as
with committed as (from shards_rows union all
  select table_name, step_id, unit from index_rows anti join superseded_rows using ({key}))
from committed where table_name in ({tables});

-- name: superseded_rows
create table superseded_rows as
-- Entries of the index whose file is damaged, or of whose unit a higher attempt is committed.
select {key} from index_rows
where superseded or list_contains([{damaged}]::varchar[], file)
  or (table_name, step_id, unit) in (from shards_rows);

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

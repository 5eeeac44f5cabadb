-- The pages that a method ranked for a question, and how good the ranking is (LongMemEval section
-- 3.3; xiaowu0162/LongMemEval, eval_utils.py).
--
-- Of several turns the pages that each requested come first in `rankings`, in the order of the
-- turns, then the others likewise; each page once. Rankings are kept to a depth of 50 pages
-- (RANKS_KEPT), by the keys of a chat to its 50th session: where a ranking ends there and its first
-- 50 pages are of fewer sessions than k, `retrieval` has nulls.
--
-- In `retrieval` the items at level page are pages, and those with gold evidence are relevant; of a
-- chat, those with evidence in a turn of the user's (`user_evidence` of the question's metadata), as
-- the authors index nothing else. At level session, of documents whose metadata have `sessions`,
-- they are the sessions that pages begin in. As in the authors' code, which keeps `answer_x` and
-- `noans_x` apart, a session's relevant pages are one item and its other pages another, which is
-- not relevant: a session is found only by a page with evidence.
--
-- recall_any, recall_all: whether any or all of the relevant items are among the first k.
-- ndcg: the discount of rank i is log2(i + 1), and an item counts where it stands first.
-- ndcg_published, as the authors compute it: the discount is log2(i), and 1 at rank 1, so that
-- ranks 1 and 2 weigh the same. At level session all pages down to the k-th item count, each by its
-- own rank.
--
-- A question for which nothing was ranked, because its look-up or its pages failed, scores 0.
-- `left_out` says why a question has no values: no evidence, abstention (`is_abstention` of its
-- metadata), or no user evidence (all of it stands in turns of the assistant's; the authors leave
-- it out).

-- name: rankings
create view {prefix}rankings as
-- A row per page that a method ranked for a question, to the 50th, or that of the 50th session.
-- page_index: of the page
-- score: what it was ranked by, in the ranking's own unit; null where that is nothing
-- rank: from 1; of several turns the pages that each requested come first
with listed as (
  select {run}method, repeat, memory, document_id, question_id, turn,
    len(requested) as num_requested, unnest(ranked) as page,
    generate_subscripts(ranked, 1) as place
  from {prefix}lookups),
once as (
  select *, page.page_index as page_index, page.score as score from listed
  qualify row_number() over (partition by {run}method, repeat, document_id, question_id,
    page.page_index order by place > num_requested, turn, place) = 1)
select {run}method, repeat, memory, document_id, question_id, page_index, score,
  row_number() over (partition by {run}method, repeat, document_id, question_id
    order by place > num_requested, turn, place) as rank
from once;

-- name: retrieval
create view {prefix}retrieval as
-- A row per question, level and k of every method that ranks. The last four columns are 0-100, null
-- where a question is left out or too few ranks were kept.
-- level: page; or session, of documents that have sessions
-- k: how many of the first are looked at: 1, 3, 5, 10, 30 or 50
-- left_out: why the question has no values: no evidence, abstention, no user evidence
-- problem: of the look-up; the question then scores 0
-- recall_any: 100 if any item with gold evidence is among the first k
-- recall_all: 100 if all of them are
-- ndcg: with the discount log2(rank + 1)
-- ndcg_published: with LongMemEval's discount: log2(rank), and 1 at rank 1
with looked_up as (
  select {run}method, repeat, memory, document_id, question_id, max(problem) as problem,
    bool_or(len(ranked) = 50) as may_be_cut
  from {prefix}lookups where not skipped group by all),
rank_pages as (select distinct {run}method from {prefix}rankings),
sessions as (
  select {run}document_id,
    try_cast(unnest(metadata ->> '$.sessions[*].start_char') as bigint) as start_char
  from {prefix}documents),
levels as (
  select {run}document_id, 'page' as level from {prefix}documents
  union all select distinct {run}document_id, 'session' from sessions),
marked as (
  select {run}document_id, question_id, metadata ->> '$.is_abstention' = 'true' as is_abstention,
    len([1 for span in evidence if span.end_char > span.start_char]) as num_spans,
    try_cast(metadata -> '$.user_evidence' as bigint[][]) as user_spans,
    metadata ->> '$.has_user_evidence' is distinct from 'false' as has_user_evidence -- until 0.2
  from {prefix}questions),
gold as (
  select {run}p.memory, document_id, question_id, p.page_index, p.start_char,
    p.gold_chars > 0 and (q.user_spans is null or len([1 for span in q.user_spans
      if span[1] < p.end_char and span[2] > p.start_char]) > 0) as is_relevant
  from {prefix}page_evidence p join marked q using ({run}document_id, question_id)),
items as (
  select {run}memory, document_id, question_id, page_index, 'page' as level, page_index as item,
    is_relevant
  from gold
  union all
  select {run}g.memory, document_id, g.question_id, g.page_index, 'session',
    2 * s.start_char + g.is_relevant::int, g.is_relevant
  from gold g asof join sessions s using ({run}document_id, start_char)),
relevant as (
  select {run}memory, document_id, question_id, level, count(distinct item) as num_relevant,
    count(*) as num_relevant_pages
  from items where is_relevant group by all),
sizes as (
  select {run}memory, document_id, question_id, count(*) as memory_pages from gold group by all),
ranked_items as (
  select *, row_number() over (partition by {run}method, repeat, document_id, question_id, level,
    item order by rank) = 1 as is_first
  from {prefix}rankings join items using ({run}memory, document_id, question_id, page_index)),
placed as (
  select *, sum(is_first::int) over (partition by {run}method, repeat, document_id, question_id,
    level order by rank) as place
  from ranked_items),
reached as (
  select {run}method, repeat, document_id, question_id, level,
    max(place) filter (rank <= 50) as num_known -- the order of later pages rests on those not kept
  from placed group by all),
ks as (select unnest([1, 3, 5, 10, 30, 50]) as k),
gains as (
  select {run}method, repeat, document_id, question_id, level, k, count(*) as num_pages,
    count(*) filter (is_first and is_relevant) as num_found,
    sum(1 / log2(place + 1)) filter (is_first and is_relevant) as gain,
    sum(1 / greatest(1, log2(rank))) filter (is_relevant) as published_gain
  from placed join ks on place < k or (place = k and is_first) group by all),
counted as (
  select {run}document_id, question_id, case
      when is_abstention then 'abstention'
      when num_spans = 0 then 'no evidence'
      when len(user_spans) = 0 or not has_user_evidence then 'no user evidence'
    end as left_out
  from marked),
valued as (
  select *,
    left_out is null and not (may_be_cut and memory_pages > 50 and num_known < k) is true
      as has_values,
    list_sum([1 / log2(i + 1) for i in range(1, least(k, num_relevant) + 1)]) as ideal,
    list_sum([1 / greatest(1, log2(i)) for i in
      range(1, least(greatest(k, num_pages), num_relevant_pages) + 1)]) as published_ideal
  from looked_up semi join rank_pages using ({run}method)
    join counted using ({run}document_id, question_id)
    join levels using ({run}document_id) cross join ks
    left join relevant using ({run}memory, document_id, question_id, level)
    left join gains using ({run}method, repeat, document_id, question_id, level, k)
    left join reached using ({run}method, repeat, document_id, question_id, level)
    left join sizes using ({run}memory, document_id, question_id))
select {run}method, repeat, memory, document_id, question_id, level, k, left_out, problem,
  if(has_values, coalesce(100.0 * (num_found > 0)::int, 0), null)::double as recall_any,
  if(has_values, coalesce(100.0 * (num_found = num_relevant)::int, 0), null)::double
    as recall_all,
  if(has_values, coalesce(round(100 * gain / ideal, 9), 0), null) as ndcg,
  if(has_values, coalesce(round(100 * published_gain / published_ideal, 9), 0), null)
    as ndcg_published
from valued;

-- name: measured
from documents where metadata ->> '$.sessions' is not null;

-- name: measures
-- Those of RANKING_MEASURES (lookups.py); `retrieval` has all others.
select method, repeat, document_id, question_id, null::varchar as rater, problem,
  'session_' || metric || '@' || k as measure, value
from (unpivot (from retrieval where level = 'session' and k in (5, 10))
  on recall_any, recall_all, ndcg, ndcg_published into name metric value value)
where value is not null;

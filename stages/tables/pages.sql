-- name: fallbacks
create view {prefix}fallbacks as
-- A row per step whose model chooses, and how often its reply named nothing legal.
-- stage: the stage that asks
-- what: what was chosen without a reply
-- asked: how often a model was to choose
-- fell_back: of that, how often its reply could not be used
select {run}'paginate' as stage, step_id, memory,
  'of the page ends asked for were chosen by no reply' as what,
  count(*) filter (chosen_by in ('model', 'fallback')) as asked,
  count(*) filter (chosen_by = 'fallback') as fell_back
from {prefix}pages group by all;

-- name: reply_health
create view {prefix}reply_health as
-- A row per step and prompt of the run: what the replies of its committed calls are like.
-- stage: the stage that asks
-- prompt: the name of its template; null: the step chose options without a call
-- replies: calls that got a reply, without those that were copied (`is_shared`)
-- unread: replies in which no value could be read
-- illegal: replies of which the value was not on offer, such as a label that no paragraph has
-- fallback: page ends of the step that no reply chose; null: it chooses none
-- truncated: replies that the reply budget ended
-- commonest: the commonest reply, its first 200 characters
-- commonest_share: of the replies, from 0 to 1, but for case
-- example_share: of the replies, those that are equal to an example of the prompt
-- choices: answers that chose an option
-- letters: the share of each letter among these, as the options were shown
-- right_letters: the share of each letter among the right options of the same questions
-- copied_share: of the gists, those with more than 80% of their page's words in the same order
-- tiny_share: of the gists, those with under 3% of the number of their page's words
with same as (
  select {run}step_id, prompt, any_value(left(trim(reply), 200)) as reply, count(*) as n,
    count(*) filter (read_as = 'unread') as unread,
    count(*) filter (read_as = 'illegal') as illegal,
    count(*) filter (problem = 'truncated') as truncated,
    count(*) filter (is_example) as examples
  from {prefix}calls where not is_shared and coalesce(problem, 'truncated') = 'truncated'
  group by {run}step_id, prompt, hash(lower(trim(reply)))),
replied as (
  select {run}step_id, prompt, sum(n)::bigint as replies, sum(unread)::bigint as unread,
    sum(illegal)::bigint as illegal, sum(truncated)::bigint as truncated,
    arg_max(reply, n) as commonest, max(n) / sum(n) as commonest_share,
    sum(examples) / sum(n) as example_share
  from same group by {run}step_id, prompt),
chosen as (
  select {run}a.step_id,
    coalesce(list_position(options_order, a.answer_index) - 1, a.answer_index) as own,
    coalesce(list_position(options_order, q.answer_index) - 1, q.answer_index) as gold
  from {prefix}answers a join {prefix}questions q using ({run}document_id, question_id)
  where a.answer_index is not null and len(q.options) > 0 and reader not in ('constant', 'given')),
shares as (
  select {run}step_id, letter, sum(own)::bigint as own,
    sum(own) / sum(sum(own)) over of_step as own_share,
    sum(gold) / nullif(sum(sum(gold)) over of_step, 0) as gold_share
  from (select {run}step_id, chr(65 + own::int) as letter, 1 as own, 0 as gold from chosen
    union all by name
    select {run}step_id, chr(65 + gold::int) as letter, 0 as own, 1 as gold from chosen
    where gold is not null)
  group by {run}step_id, letter window of_step as (partition by {run}step_id)),
lettered as (
  select {run}step_id, sum(own)::bigint as choices,
    map_from_entries(list((letter, own_share) order by letter) filter (own_share > 0)) as letters,
    map_from_entries(list((letter, gold_share) order by letter) filter (gold_share > 0))
      as right_letters
  from shares group by {run}step_id),
shortened as (
  select {run}g.step_id, avg((copied > 0.8)::int) as copied_share,
    avg((g.num_words < 0.03 * p.num_words)::int) as tiny_share
  from {prefix}gists g join {prefix}pages p using ({run}memory, document_id, page_index)
  where gist is not null group by {run}g.step_id),
fell as (
  select {run}step_id, sum(fell_back)::bigint as fallback from {prefix}fallbacks
  where asked > 0 group by {run}step_id)
select {run}step_id, stage, method, repeat, prompt, coalesce(replies, 0) as replies,
  coalesce(unread, 0) as unread, coalesce(illegal, 0) as illegal, fallback,
  coalesce(truncated, 0) as truncated, commonest, commonest_share, example_share,
  coalesce(choices, 0) as choices, letters, right_letters, copied_share, tiny_share
from replied full join lettered using ({run}step_id)
left join shortened using ({run}step_id) left join fell using ({run}step_id)
left join {prefix}steps using ({run}step_id);

-- name: page_evidence
create view {prefix}page_evidence as
-- A row per page and question that has gold evidence.
-- page_index: of the page
-- start_char: of the page, in the document's text
-- end_char: of the page, in the document's text
-- gold_chars: characters of gold evidence on the page, each counted once
with spans as (
  select {run}document_id, question_id, unnest(evidence) as span from {prefix}questions),
-- Where gold spans overlap, each counts from where those before it end.
gold as (
  select * exclude (span), span.end_char as gold_end, greatest(span.start_char, coalesce(
    max(span.end_char) over (partition by {run}document_id, question_id
      order by span.start_char, span.end_char
      rows between unbounded preceding and 1 preceding), 0)) as gold_start
  from spans)
select {run}memory, document_id, question_id, page_index, start_char, end_char,
  sum(greatest(0, least(end_char, gold_end) - greatest(start_char, gold_start)))::bigint
    as gold_chars
from {prefix}pages join gold using ({run}document_id)
where text is not null group by all;

-- name: page_spans
create view {prefix}page_spans as
-- Where each page of a memory stands in its document.
-- page_index: of the page, from 0
-- start_char: in the document's text
-- end_char: in the document's text
select {run}memory, document_id, page_index, start_char, end_char from {prefix}pages;

-- name: memories
-- pages: pages of all documents
-- words_per_page: the mean, in words
-- fallback: of the page ends that a model was to choose, the percentage chosen by no reply
select memory, count(*) as pages, avg(num_words) as words_per_page,
  100 * count(*) filter (chosen_by = 'fallback')
    / nullif(count(*) filter (chosen_by in ('model', 'fallback')), 0) as fallback
from pages group by memory;

-- name: sizes
select memory, 'pages per document' as measure, 'documents' as rows_of, 30 as place,
  count(*)::double as value
from pages where text is not null group by memory, document_id
union all by name
select memory, 'words per page' as measure, 'pages' as rows_of, 50 as place,
  num_words::double as value
from pages where text is not null;

-- name: page_texts
select memory, document_id, page_index, 10 as place, 'page' as heading, text, num_words,
problem
from pages;

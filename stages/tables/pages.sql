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

-- name: memories
-- words_per_gist: the mean, in words
-- gist_compression: 100 * (1 - words of all gists / words of all pages)
-- truncated_gists: gists that the reply budget ended
select memory, avg(g.num_words) as words_per_gist,
  100 * (1 - sum(g.num_words) / nullif(sum(p.num_words), 0)) as gist_compression,
  count(*) filter (g.problem = 'truncated') as truncated_gists
from gists g join pages p using (memory, document_id, page_index) group by memory;

-- name: sizes
-- A page without a gist is left out of its document's memory.
with of_documents as (
  select memory, document_id, sum(g.num_words) as gist_words,
    any_value(d.num_words) as num_words
  from gists g join documents d using (document_id) where gist is not null group by all)
select memory, 'words per gist memory' as measure, 'documents' as rows_of, 20 as place,
  gist_words::double as value
from of_documents
union all by name
select memory, 'compression rate of the gists, %' as measure, 'documents' as rows_of,
  40 as place, 100 * (1 - gist_words / num_words) as value
from of_documents
union all by name
select memory, 'words per gist' as measure, 'pages' as rows_of, 60 as place,
  num_words::double as value
from gists where gist is not null;

-- name: page_texts
select memory, document_id, page_index, 20 as place, 'gist' as heading, gist as text,
  num_words, problem
from gists;

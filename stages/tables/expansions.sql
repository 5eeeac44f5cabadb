-- name: page_texts
select memory, document_id, page_index, 40 as place, 'extracted' as heading,
  string_agg(text, chr(10) order by kind, item_index) as text, null::bigint as num_words,
  min(problem) as problem
from expansions group by all;

-- name: sizes
select memory, 'keys per page' as measure, 'pages' as rows_of, 90 as place,
  count(text)::double as value
from keys group by memory, step_id, document_id, page_index;

-- name: sizes
select null::varchar as memory, 'words per document' as measure, 'documents' as rows_of,
  10 as place, num_words::double as value
from documents where problem is null and not skipped;

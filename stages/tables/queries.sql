-- name: measures
select method, repeat, document_id, question_id, null::varchar as rater,
  max(problem) as problem, 'queries' as measure,
  count(*) filter (text is not null and dropped is null and kind <> 'time_range')::double
    as value
from queries group by all;

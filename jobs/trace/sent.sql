-- name: question_id
from calls where question_id in (select unnest(getvariable('asked_about')))
order by list_position(getvariable('stages'), stage), method, repeat, step_id, unit, call_index;

-- name: document_id
from calls where document_id in (select unnest(getvariable('asked_about'))) and method is null
  and question_id is null
order by list_position(getvariable('stages'), stage), memory, step_id, unit, call_index;

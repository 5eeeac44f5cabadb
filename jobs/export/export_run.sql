-- name: methods
select distinct method from predictions order by method;

-- name: answers
select question_id, document_id, method, repeat, answer, answer_index, problem,
  coalesce(options[answer_index + 1], answer, '') as text, judged
from {source} where method = {method} order by document_id, question_id, repeat;

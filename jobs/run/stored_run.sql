-- name: to_audit
select document_id, question_id, question, "references", question_type, task
from questions
where problem is null and len(options) = 0 and len("references") > 0
order by document_id, question_id;

-- name: unusable_documents
select document_id as id from documents where problem is not null or skipped
union all select document_id from questions anti join documents using (document_id)
where problem is not null;

-- name: unusable_questions
select question_id as id from questions
where problem is not null or document_id in
  (select document_id from documents where problem is not null or skipped);

-- name: like
select document_id from documents where not skipped
order by jaro_winkler_similarity(document_id, getvariable('document')) desc, document_id limit 3;

-- name: elsewhere
select distinct run from all_documents
where document_id = getvariable('document') and run is not null order by run limit 3;

-- name: memories
select distinct memory from page_texts where document_id = getvariable('document')
order by memory;

-- name: texts
select page_index, heading, text, num_words, problem from page_texts
where document_id = getvariable('document') and memory = getvariable('memory')
  and last_page_index is null
order by page_index, place;

-- name: of_several
select heading, text, num_words, problem, page_index, last_page_index from page_texts
where document_id = getvariable('document') and memory = getvariable('memory')
  and last_page_index is not null
order by last_page_index - page_index desc, page_index, place, heading;

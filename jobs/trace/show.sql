-- name: document
select title, num_words, detail from documents where document_id = getvariable('document');

-- name: memories
select distinct memory from page_texts where document_id = getvariable('document')
order by memory;

-- name: texts
-- The page's own text first; a null text: there is none, for the reason `problem`.
select page_index, list({heading: heading, text: text, num_words: num_words, problem: problem}
  order by place) as texts
from page_texts where document_id = getvariable('document') and memory = getvariable('memory')
  and last_page_index is null
group by page_index order by page_index;

-- name: of_several
-- Texts made of several pages together, such as a node of a tree.
select heading, text, num_words, problem, page_index, last_page_index from page_texts
where document_id = getvariable('document') and memory = getvariable('memory')
  and last_page_index is not null
order by last_page_index - page_index desc, page_index, place, heading;

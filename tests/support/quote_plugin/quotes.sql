-- name: quoted
create view {prefix}quoted as
-- A row per quote that a page gave.
-- quote: the words, as the model copied them
-- num_chars: of the quote
select {run}method, repeat, document_id, question_id, place, page_index, quote,
  length(quote) as num_chars
from {prefix}quotes where quote is not null;

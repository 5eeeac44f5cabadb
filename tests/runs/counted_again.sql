with walked as (
    -- The tokens of each answer's context, counted again from the texts that other tables hold.
    select method, document_id, question_id, memory, node_index, min(turn) as first from visits group by all),
  leaves as (
    select method, document_id, question_id, max_by(node_index, turn) as leaf,
      max_by(num_memory_words, turn) as shown
    from visits group by all),
  working_memory as (
    select method, document_id, question_id, shown,
      regexp_split_to_array(string_agg(trim(summary), ' ' order by first), '\s+') as words
    from walked join leaves using (method, document_id, question_id) join nodes using (document_id, memory, node_index)
    where node_index <> leaf group by all),
  parts as (
    select method, a.document_id, question_id,
      substring(text, span.start_char + 1, span.end_char - span.start_char) as part
    from (select *, unnest(context_spans) as span from answers) a join documents d on d.document_id = a.document_id
    union all
    select method, a.document_id, question_id, gist from answers a join gists g on g.memory = a.memory
      and g.document_id = a.document_id and not list_contains(a.page_indexes, g.page_index)
    where method like 'readagent%'
    union all
    select method, document_id, question_id, array_to_string(words[len(words) - shown + 1:], ' ') from working_memory)
  select method, question_id, num_context_tokens,
    sum(length(regexp_extract_all(part, '[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]'))) as counted
  from answers join parts using (method, document_id, question_id)
  where problem is null group by all order by all

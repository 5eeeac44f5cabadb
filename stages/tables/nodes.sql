-- name: memories
-- stand_ins: nodes without a summary of their own, which have the texts below them in its place
-- unreachable: percentage of the text below nodes without a summary, to which no walk leads
with lost as (
  select step_id, document_id, start_char, end_char from nodes
  where summary is null and parent is not null),
leaves as (
  select memory, n.end_char - n.start_char as chars, exists (from lost l
      where l.step_id = n.step_id and l.document_id = n.document_id
        and l.start_char <= n.start_char and n.end_char <= l.end_char) as is_lost
  from nodes n where page_index is not null),
stood_in as (
  select memory, count(*) filter (summary is not null and detail is not null) as stand_ins
  from nodes group by memory)
select memory, any_value(stand_ins) as stand_ins,
  100 * coalesce(sum(chars) filter (is_lost), 0) / sum(chars) as unreachable
from leaves join stood_in using (memory) group by memory;

-- name: page_texts
with named as (
  select *, case when min(step_id) over trees < max(step_id) over trees
    then ' ' || step_id else '' end as tree
  from nodes window trees as (partition by memory, document_id))
select memory, document_id, page_index, 30 as place, 'leaf of the tree' || tree as heading,
  summary as text, num_words, problem
from named where page_index is not null
union all by name
select n.memory, n.document_id, min(leaf.page_index) as page_index,
  max(leaf.page_index) as last_page_index, 1000 - n.level as place,
  'node ' || n.node_index || ' of the tree' || n.tree as heading,
  any_value(n.summary) as text, any_value(n.num_words) as num_words,
  any_value(n.problem) as problem
from named n join nodes leaf using (step_id, document_id)
where n.page_index is null and leaf.page_index is not null
  and leaf.start_char >= n.start_char and leaf.end_char <= n.end_char
group by all;

-- name: sizes
select memory, 'nodes per tree' as measure, 'documents' as rows_of, 70 as place,
  count(*)::double as value
from nodes group by memory, step_id, document_id
union all by name
select memory, 'words per summary' as measure, 'nodes' as rows_of, 80 as place,
  num_words::double as value
from nodes where summary is not null;

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

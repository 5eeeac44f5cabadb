"""Statements in SQL that find rows which no reply may lead to, whatever it says."""

# Rows that no run may have, by table.
NEVER = {
    "a page that was read, or is of an answer, is none": """
        select * from (select memory, document_id, unnest(used) as page_index from lookups
          union all select memory, document_id, unnest(page_indexes) from answers)
        anti join pages using (memory, document_id, page_index)""",
    "a page is read twice": """
        select used from lookups where len(used) <> len(list_distinct(used))""",
    "pages with gaps": """
        select * from (select *, lag(end_char, 1, 0) over (partition by step_id, document_id
          order by page_index) as before from pages)
        where problem is null and start_char <> before""",
    "pages that end early": """
        select max(end_char) as last, any_value(length(d.text)) as whole
        from pages join documents d using (document_id)
        group by pages.step_id, document_id having last <> whole and count(pages.problem) = 0""",
    "a page of no known choice": """
        select chosen_by from pages
        where problem is null and chosen_by not in ('model', 'rule', 'end', 'fallback')""",
    "an option that is none": """
        select a.answer_index, q.options from answers a join questions q using (question_id)
        where a.answer_index not between 0 and len(q.options) - 1""",
    "an option from a problem": """
        select answer_index, problem from answers where answer_index is not null
          and problem in ('unparseable', 'out_of_range', 'upstream', 'engine_failed')""",
    "no answer, no problem": """
        select * from answers where answer is null and problem is null and not skipped""",
    "an empty answer": "select * from answers where trim(answer) = '' and problem is null",
    "an empty gist": "select * from gists where trim(coalesce(gist, '')) = '' and problem is null",
    "an empty summary": """
        select * from nodes where trim(coalesce(summary, '')) = '' and problem is null""",
    "an illegal label": """
        select label, rubric from ratings where label not in ('yes', 'partially', 'no')
          or (label = 'partially' and rubric <> 'permissive')
          or value <> case label when 'yes' then 1 when 'partially' then 0.5 else 0 end""",
    "a label from a problem": """
        select label, problem from ratings where label is not null and problem is not null""",
    "no label, no problem": """
        select * from ratings where label is null and problem is null and not skipped""",
    "a day that is none": """
        select * from (select unnest([start_date, end_date]) as day from queries
          union all select day from expansions)
        where day is not null and (try_strptime(day, '%Y/%m/%d') is null or length(day) <> 10)""",
    "a range that ends before": "select * from queries where start_date > end_date",
    "an empty query": "select * from queries where trim(text) = ''",
    "a query dropped for no known reason": """
        select dropped from queries where dropped not in ('short', 'duplicate', 'over_maximum')""",
    "a page dropped for no known reason": """
        select * from (select unnest(dropped) as d from lookups) where d.reason not in
          ('duplicate', 'out_of_range', 'over_maximum', 'no_room', 'rejected')""",
    "a node that is none": """
        select to_node from visits v where to_node is not null and not exists (
          from nodes n where n.document_id = v.document_id and n.node_index = v.to_node)""",
    "an unknown action": """
        select action from visits where action not in ('enter', 'revert', 'answer')""",
    "a visit from a problem": """
        select action, problem from visits where action is not null and problem is not null
          and problem not in ('truncated', 'out_of_range')""",
}  # fmt: skip
# What was read, and the replies that it was read in.
READ = {
    "a verdict": """
        select case r.label when 'partially' then 'partial' else r.label end, [c.reply]
        from ratings r join calls c on c.step_id = r.step_id
          and c.unit = r.unit and c.question_id = r.question_id
          and c.reference_index is not distinct from r.reference_index
          and c.prompt in ('rate_' || r.rubric, 'judge_' || r.rubric)
        where r.label is not null""",
    "an option": """
        select chr(97 + a.answer_index::int), list(c.reply)
        from answers a join calls c using (step_id, unit, question_id)
        where a.answer_index is not null and c.prompt in ('answer', 'answer_chats') group by all""",
    "a page": """
        select page::varchar, replies from (select unnest(requested) as page, replies
          from lookups join (select step_id, unit, question_id, list(reply) as replies from calls
            where prompt in ('look_up_p', 'look_up_s') group by all)
            using (step_id, unit, question_id))""",
}  # fmt: skip

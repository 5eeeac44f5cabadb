"""One module per prompt (rubrics.py has five): its fields, sample fills, parser, constraint,
default reply budget, what the extractive engine replies, and what `gistmill plan` expects and at
most counts.

The grammars are those of the papers' prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H), one
parser for every family. Page numbers in prompts and replies are the family's (`first_page` 0 or 1),
not page indexes.

parsing/      what parsers share          replies.py, lines.py (several lines), json_replies.py
              what prompts show           passages.py
readagent/    break_point.py              where to end a page
              gist.py, gist_for_task.py   shorten a page; for the task at hand
              shorten_gist.py             the prompt regist: a gist once more, until all fit
              look_up_p.py, look_up_s.py  which pages to read again: at once, or the next one
              answer.py                   answer the question; most methods'
              starts_chapter.py           whether a chapter begins (NarrativeQA's novels)
memwalker/    summarize.py, compress.py   a segment; summaries (section 3)
              triage.py, read_leaf.py     which way to go in the tree; read, or go back
              actions.py                  the actions that replies of both name
              update_summary.py           carry notes along (the recurrence of section 4)
memorag/      clue_*.py, draft_answer.py, key_points.py, from_memory.py  clues (section 2)
              gist_chunk.py               shorten a chunk (MemoRAG-Lite)
              hypothetical.py             a passage made up (HyDE)
              sub_questions.py            the question taken apart (RQ-RAG)
longmemeval/  extract_*.py                keys of a chat (sections 5.3, 5.4)
              chat_fields.py              the fields that these and note.py share
              time_range.py               which days the question means
              note.py, answer_chats*.py   what one chat says; the answer (section 5.5)
judging/      rate_strict.py, rate_permissive.py  does it agree (ReadAgent section 4.1)
              rubrics.py                  is it right, by the type of question (LongMemEval A.4)
              verdicts.py, yes_or_no.py   what ratings share
"""

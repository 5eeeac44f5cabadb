"""One module per prompt: its fields, sample fills, parser, constraint, default reply budget, what
the extractive engine replies, and what `gistmill plan` expects and at most counts.

The grammars are those of the paper's prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H),
one parser for every family. Page numbers in prompts and replies are the family's (`first_page` 0 or
1), not page indexes.

break_point.py   where to end a page        look_up_p.py        which pages to read again, at once
gist.py          shorten a page             look_up_s.py        which page to read again next
answer.py        answer the question        rate_strict.py      does it agree: YES or NO
update_summary.py   carry notes along       rate_permissive.py  Yes; Yes, partially; No
clue_spans.py       pieces of the text that may have the answer       (MemoRAG section 2)
clue_questions.py   more concrete questions that lead to it
draft_answer.py     a provisional answer          key_points.py       of a text to be summarized
gist_chunk.py       shorten a chunk (MemoRAG-Lite)
hypothetical.py     a passage made up (HyDE)      sub_questions.py    the question taken apart
extract_summary.py      of a chat, a key to find it by     (LongMemEval sections 5.3, 5.4)
extract_keyphrases.py   what a chat is about      extract_facts.py    what users say of themselves
extract_events.py       what happened, and when   time_range.py       which days the question means
note.py                 what one chat says about the question      (LongMemEval section 5.5)
answer_chats.py         answer from chats         answer_chats_con.py after notes on them
judge_*.py       is it right: yes or no, by the type of the question (LongMemEval A.4)
passages.py      what prompts show of a text
replies.py       what parsers share         verdicts.py         what ratings share
from_memory.py   what clues share           lines.py            a reply of several lines
chats.py         what is extracted from     json_replies.py     a reply that is JSON
"""

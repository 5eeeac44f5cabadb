"""The prompts of all methods: their fields, sample fills, parsers, constraints and default reply
budgets, what the extractive engine replies, and what `gistmill plan` expects and at most counts.

The grammars are those of the papers' prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H), one
parser for every family. Page numbers in prompts and replies are the family's (`first_page` 0 or 1),
not page indexes.

passages.py         what prompts show of a text
replies.py          what parsers share: negations, lines, JSON; forms of constrained replies
pages_and_gists.py  ReadAgent: where to end a page, whether a chapter begins; shorten a page, for
                    the task at hand, and once more (the prompt regist), until all fit
choose_pages.py     ReadAgent: which pages to read again, at once or the next one
answer_question.py  answer the question; most methods'
memwalker.py        a tree: summaries, which way to go in it, read or go back; running summaries
memorag.py          clues from a memory; a passage made up (HyDE), the question taken apart (RQ-RAG)
chat_keys.py        LongMemEval: keys of a chat
chat_reading.py     LongMemEval: which days the question means, what one chat says, the answer
judging.py          does an answer agree (ReadAgent), is it right, by the type of question
"""

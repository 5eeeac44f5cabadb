"""The prompts of all methods: their fields, sample fills, parsers, constraints and default reply
budgets, what the extractive engine replies, and what `gistmill plan` expects and at most counts.

The grammars are those of the papers' prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H);
all families share the parsers. Page numbers in prompts and replies are the family's (`first_page`
0 or 1), not page indexes.

passages.py         passages of a text that prompts show
replies.py          shared by parsers: negations, lines, JSON; forms of constrained replies
pages_and_gists.py  ReadAgent: where to end a page, whether a chapter begins; shorten a page, also
                    for a task, and shorten gists again until all fit (the prompt regist)
choose_pages.py     ReadAgent: which pages to read again, all at once or one at a time
answer_question.py  answer the question; used by most methods
memwalker.py        MemWalker: summaries of a tree, navigation, running summaries
memorag.py          MemoRAG: clues from a memory; HyDE: a passage; RQ-RAG: sub-questions
chat_keys.py        LongMemEval: keys of a chat
chat_reading.py     LongMemEval: the question's time range, a note on one chat, the answer
judging.py          ReadAgent: agreement with references; LongMemEval: rubrics by question type
"""

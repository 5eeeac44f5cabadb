"""The prompts of all methods: their fields, samples, parsers, constraints and reply budgets, and
the replies of the extractive engine and those that `gistmill plan` expects.

The grammars are those of the papers' prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H);
all families share the parsers. Page numbers in prompts and replies are the family's (`first_page`
0 or 1), not page indexes.

parsing.py            shared by parsers: negations, lines, JSON; forms of constrained replies
answer.py             passages of a text, and the answer; used by most methods
readagent_memory.py   ReadAgent: where to end a page, whether a chapter begins; gists
readagent_look_up.py  ReadAgent: which pages to read again, all at once or one at a time
memwalker.py          MemWalker: summaries of a tree, navigation, running summaries
memorag.py            MemoRAG: clues from a memory; HyDE: a passage; RQ-RAG: sub-questions
longmemeval.py        LongMemEval: keys of a chat, a question's time range, notes and answers
judging.py            ReadAgent: agreement with references; LongMemEval: rubrics by question type
"""

"""The prompts of all methods: their fields, samples, parsers, constraints and reply budgets, and
the replies of the extractive engine and those that `gistmill plan` expects.

The grammars are those of the papers' prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H);
all families share the parsers. Page numbers in prompts and replies are the family's (`first_page`
0 or 1), not page indexes.

parsing.py            shared by parsers: negations, lines, JSON; forms of constrained replies
answer.py             passages of a text, and the answer; asked by `answer`
readagent_memory.py   ReadAgent: ends of pages, gists; asked by `paginate`, `gist`
readagent_look_up.py  ReadAgent: pages to read again, at once or in turn; asked by `look_up`
memwalker.py          MemWalker: summaries, navigation; asked by `paginate`, `tree`, `navigate`,
                      `update_summary`
memorag.py            MemoRAG: clues from a memory; HyDE, RQ-RAG: queries; asked by `memorize`,
                      `queries`, `refine`
longmemeval.py        LongMemEval: keys, time ranges, notes, answers; asked by `expand`, `queries`,
                      `notes`, `answer`
judging.py            ReadAgent: agreement with references; LongMemEval: rubrics; asked by `rate`
"""

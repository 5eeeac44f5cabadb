"""The methods. A document's way from text to score, in the order to read it:

corpora/      a file in its native format -> documents, questions
paginate.py   document -> pages                       (ReadAgent section 3.1)
gist.py       pages -> gists                          (section 3.1)
index.py      pages or gists -> embeddings            (section 4.2; where a method needs them)
look_up.py    question + gists -> the pages to read again (section 3.2)
retrieve.py   the same without a model: BM25, dense, random, oracle
answer.py     question + gists and pages -> answer
rate.py       answer x reference -> strict and permissive verdict (section 4.1)
scores.py     answer -> metrics, evidence recall

fields.py says what each prompt is filled with, context.py what the reader sees, parsing.py reads
the replies, constraints.py says what a constrained one may be, family.py what a family of prompts
settles, methods.py turns `bm25(top_k=3)` into stages, metrics.py has the metrics, paragraphs.py
says where paragraphs and sentences end.
engines.py names the engines; extractive.py (on excerpts.py, ranking.py) needs no model.
Every stage sees a model only through `ask`; imports go to `pipeline` only.
"""

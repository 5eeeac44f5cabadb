"""The methods. A document's way from text to score, in the order to read it:

corpora/      a file in its native format -> documents, questions
paginate.py   document -> pages                       (ReadAgent section 3.1)
gist.py       pages -> gists                          (section 3.1)
look_up.py    question + gists -> the pages to read again (section 3.2)
retrieve.py   the same without a model: BM25, random, oracle
answer.py     question + gists and pages -> answer
rate.py       answer x reference -> strict and permissive verdict (section 4.1)
scores.py     answer -> metrics, evidence recall

fields.py says what each prompt is filled with, parsing.py reads the replies, methods.py turns
`bm25(top_k=3)` into stages, extractive.py is the engine that needs no model.
Every stage sees a model only through `ask`; imports go to `pipeline` only.
"""

"""The methods' stages, their tables and prompts. A document's way from text to score, in the order
to read it:

corpora/    a file in its native format -> documents, questions
index/      document -> pages -> gists, embeddings             (ReadAgent sections 3.1, 4.2)
retrieve/   question + gists or pages -> pages to read again   (section 3.2; BM25, dense ...)
read/       question + gists and pages -> answer
judge/      answer x reference -> strict and permissive verdict  (section 4.1)
score/      answer -> metrics, evidence recall

A stage's file holds the record class of the table it writes. prompts/ has a module per prompt: what
it is filled with, how its reply is read, and all else that is known of it. text/ has words,
paragraphs and rankings. Every stage sees a model only through `ask`; imports go to `pipeline` only.
"""

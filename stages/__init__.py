"""The stages of all methods, with their tables and prompts. Read the packages in this order, which
is a document's path from text to score:

extract/    a PDF, EPUB or Word file, a web page -> its text
corpora/    a file in its native format -> documents, questions
index/      document -> pages -> gists, embeddings             (ReadAgent sections 3.1, 4.2)
                     -> segments -> tree of summaries          (MemWalker section 3)
                     -> chunks, a memory for clues             (MemoRAG section 2)
                     -> sessions or rounds -> keys             (LongMemEval section 5)
gathered/   pages of many documents -> one document, with its memory; answer + pages -> quotes
query/      question + memory -> clues to search for           (MemoRAG section 2; HyDE, RQ-RAG)
retrieve/   question + gists or pages -> pages to read again   (section 3.2; BM25, dense ...)
            question + tree -> visits                          (MemWalker section 3)
            queries + chunks -> chunks to read                 (MemoRAG section 2)
            question + keys -> sessions or rounds to read      (LongMemEval section 5)
read/       question + gists and pages, or visits -> answer
            question + segments in turn -> running summaries -> answer  (MemWalker section 4)
            question + sessions or rounds -> notes -> answer            (LongMemEval section 5)
judge/      answer x reference -> strict and permissive verdict  (section 4.1)
            answer -> verdict by the question's type           (LongMemEval A.4)
score/      answer -> metrics, evidence recall

tables/ has the tables' record classes and their lines in a trace, with their SQL, if any, beside
them. prompts/ has the prompts by paper: their fields, how replies are parsed, their constraints and
budgets. text/ has words, paragraphs and ranking. A stage calls a model only through `ask`. A folder
imports from those before it in the order tables, text, extract, prompts, corpora, index, gathered,
query, retrieve, read, judge, score, and from `pipeline`.
"""

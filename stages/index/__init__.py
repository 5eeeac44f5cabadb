"""Document to pages, gists, trees, memories, expansions, keys and embeddings, without any question;
and `context.py`, how a reader is shown pages and gists."""

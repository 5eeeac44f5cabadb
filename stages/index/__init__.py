"""Index: a document's memory, made once for all its questions."""

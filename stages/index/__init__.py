"""Index: what is made of a document once, for all its questions."""

"""Queries and an index to the pages, nodes or chunks that are read for a question."""

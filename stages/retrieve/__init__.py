"""Stages that choose the pages, nodes or chunks to read for a question, by its queries and an
index."""

"""Retrieve: which pages are read for a question."""

"""Retrieve: choose the pages to read for a question."""

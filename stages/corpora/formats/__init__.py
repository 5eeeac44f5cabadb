"""Corpora in published formats, and synthetic ones."""

"""Prompt templates in a user's copy of the notebook of ReadAgent's authors.

The notebook has no licence, so nothing of it is shipped: only the names of its strings are known.
"""

"""Stages from a document to pages, gists, trees, memories, expansions, keys and embeddings, without
any question; context.py builds a reader's context from pages and gists."""

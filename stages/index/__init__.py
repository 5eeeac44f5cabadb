"""Document to pages, gists, trees, memories, keys and embeddings; no question is known here."""

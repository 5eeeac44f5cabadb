"""Query: what is searched for on behalf of a question."""

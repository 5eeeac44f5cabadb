"""Judge: a model rates answers against references."""

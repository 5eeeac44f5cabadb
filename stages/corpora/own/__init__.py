"""A user's own documents: folders of files, tables, rows of any columns, datasets
of a hub, one question."""

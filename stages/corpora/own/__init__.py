"""A user's own documents: folders of files, tables, datasets of a hub, one question."""

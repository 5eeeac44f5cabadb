"""A user's own documents: folders of files, tables, rows of any columns, and one question about
given files."""

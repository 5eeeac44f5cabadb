"""A user's own documents: folders of files, tables, rows of any columns, Hugging Face datasets, and
one question about given files."""

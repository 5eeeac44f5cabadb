"""A DuckDB connection with views over the committed files, locked against writing."""

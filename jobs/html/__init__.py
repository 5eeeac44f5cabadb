"""The HTML page of a run: one file, or served from the warehouse."""

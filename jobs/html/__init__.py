"""The HTML page of a run: one file that opens offline, or served from the warehouse."""

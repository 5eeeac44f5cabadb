"""The problems of a run: by their causes, what to do about each, and what a retry healed."""

"""The problems of a run: by their causes, and what to do about each."""

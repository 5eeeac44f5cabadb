"""Exports a run to files: answers, tables, and the picture of scores against tokens read."""

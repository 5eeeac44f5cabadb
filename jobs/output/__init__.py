"""Printing by commands: parts, drawn as Markdown, LaTeX or for a terminal; CSV, JSON, and warnings
of damaged files."""

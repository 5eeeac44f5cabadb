"""Printing by commands: cells, tables for terminals, Markdown and CSV, and
warnings of damaged files."""

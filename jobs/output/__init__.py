"""Printing by commands: cells, tables for terminals, Markdown and CSV."""

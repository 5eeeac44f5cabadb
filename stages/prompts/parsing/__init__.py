"""Shared by prompts: reading replies (lines, JSON, labels), showing passages of a text."""

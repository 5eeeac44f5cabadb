"""Scores against tokens read: which methods none beats with fewer tokens, and the picture of it."""

"""Corpora and documents made for tests."""

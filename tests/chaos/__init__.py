"""Runs and stores that are disturbed at seeded moments, and the tables they end with.

`make chaos` executes all of it and prints the figures; `make test-slow` a short form.
"""

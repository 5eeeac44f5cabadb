"""Runs of the systems of the four papers, whole: their rows, measures and experiments."""

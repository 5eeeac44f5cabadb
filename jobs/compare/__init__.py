"""Comparison of methods, paired on the questions that both answered."""

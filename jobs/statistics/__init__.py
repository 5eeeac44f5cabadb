"""Means with intervals, and paired tests."""

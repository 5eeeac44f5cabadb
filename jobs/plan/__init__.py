"""Estimates of a run's cost, by the real stages and an engine that only counts tokens."""

"""Trackers, one module each: services that keep what a run was configured with, its progress and
its final table."""

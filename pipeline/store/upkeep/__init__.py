"""Leases, and the work done under them: compaction, garbage collection, removal of runs."""

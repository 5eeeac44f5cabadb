"""Compaction, retention and removal of runs, under leases: upkeep holds the warehouse's alone, runs
share theirs; retention is the only deletion of tables' files."""

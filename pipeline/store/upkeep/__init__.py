"""Compaction, removal of runs, and retention, the only deletion of tables' files."""

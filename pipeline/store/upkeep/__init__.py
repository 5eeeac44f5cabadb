"""Compaction, retention and removal of runs, under leases: upkeep holds the warehouse's exclusively,
runs hold a shared one; retention is the only deletion of tables' files."""

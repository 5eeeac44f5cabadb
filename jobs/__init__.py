"""The command line and what it launches: runs, plans, reports, benchmarks, submissions."""

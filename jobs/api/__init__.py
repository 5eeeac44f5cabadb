"""The functions that a script or notebook calls: run, report, compare, config."""

"""All that one launches: the command line, runs, reports."""

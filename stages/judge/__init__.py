"""Judge: verdicts on answers."""

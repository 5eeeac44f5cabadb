"""One worker process, which executes units, sends heartbeats and marks documents in flight; and
what executions do with its outcomes, on Ray or inline."""

"""One worker process: it executes units, sends heartbeats and marks documents in flight. Also the
handling of its outcomes by executions, on Ray or inline."""

"""One process: executes the units of documents, sends heartbeats, and marks documents in flight."""

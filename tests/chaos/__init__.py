"""Runs and stores that are disturbed at seeded moments, and the tables they end with: `make chaos`;
`make test-slow` has a short form."""

"""Types and functions that every other folder uses: rows, prompts, calls, the interface of an
engine, errors, settings and the registries by name. Reads no data."""

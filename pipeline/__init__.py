"""The pipeline's machinery: rows, steps, units, engines, store, Ray. Knows nothing of reading."""

"""The machinery: rows, steps, the store, engines and Ray. Knows nothing about reading."""

"""Answer to a model's verdicts on it."""

"""The facts of a run that a paper has to state."""

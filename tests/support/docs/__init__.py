"""README, docs, notebooks and the page of a run, executed and opened as a reader does."""

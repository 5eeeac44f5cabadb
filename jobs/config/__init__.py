"""The configuration of a run, clusters and deadlines; the options of reading verbs."""

"""RunConfig and its parts, clusters and deadlines; options of reading verbs."""

"""RunConfig and its parts, clusters and deadlines; options of reading verbs and their
completion in a shell; papers to cite."""

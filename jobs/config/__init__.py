"""The words of a command as one checked, frozen RunConfig; options of reading verbs; clusters."""

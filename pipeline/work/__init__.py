"""The work to do: stages, methods, steps named by hashes, and units of work; and
the check of a family's prompts."""

"""The prompts of all methods, by paper and by what they ask for: their fields, samples, parsers,
constraints and reply budgets, and the replies of the extractive engine and those that `gistmill
plan` expects.

The docstring of each prompt names the stages that ask it. The grammars are those of the papers'
prompts; all families share the parsers. Page numbers in prompts and replies are the family's
(`first_page` 0 or 1), not page indexes.
"""

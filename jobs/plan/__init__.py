"""Estimates of a run's cost before anything runs: `gistmill plan`.

The real stages, prompts and executor process documents with an engine that only counts tokens, on
copies of the rows in memory. No stage or prompt is named here: a prompt's expected reply is defined
in the prompt's module.
"""

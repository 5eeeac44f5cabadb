"""Estimates of a run's cost before anything runs: `gistmill plan`.

The real stages, prompts and executor process documents with an engine that only counts tokens, on
copies of the rows in memory. No stage or prompt is named here: a prompt's expected reply is defined
in the prompt's module.

counting.py  the engine, and what else stands in for what a run has
estimate.py  expected costs of every step, counted on documents of every length
plan.py      the command: rates, hours and money; makes the plan and prints it
"""

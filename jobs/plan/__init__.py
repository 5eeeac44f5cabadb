"""Estimates of a run's cost before anything runs: `gistmill plan`.

The real stages, prompts and executor process documents with an engine that only counts tokens, on
copies of the rows in memory. No stage or prompt is named here: a prompt's expected reply is defined
in the prompt's module.

pilot.py        chooses the documents that are counted, and executes them in all stages
estimate.py     expected costs of every step, and the assumptions of the numbers
cost_rates.py   from tokens to seconds and money, by given rates or those of an earlier run
plan.py         the command: makes the plan, stores it, prints it
"""

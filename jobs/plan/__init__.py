"""What a run will cost, before anything runs: `gistmill plan`.

The real stages, prompts and executor process documents with an engine that only counts tokens, on
copies of the rows in memory. No stage or prompt is named here: what a prompt's reply is expected to
be, and at most, stands in the prompt's module.

pilot.py        which documents are counted, and what each of them stands for
counting.py     those documents through all stages, once for each scenario
reference.py    reply lengths and speed of an earlier run
rates.py        from tokens to seconds and money
assumptions.py  what the numbers rest on
plan.py         the plan as JSON
show.py         the command: makes the plan, keeps it, prints it
outcome.py      the plan beside what happened, for the report
"""

"""What a run will cost, before anything runs: `gistmill plan`.

The run itself on some documents, or where that is quick on all, with an engine that only counts:
the real stages, prompts and executor, on copies in memory. Nothing here knows a stage or a prompt;
what is expected of a prompt's replies, and at most, stands in the prompt's module.

pilot.py     the documents with something to ask, and those of them that are counted
counting.py  the pilot through all stages, once for each scenario
scaling.py   from the pilot to the corpus, by words and questions
former.py    what a former run of the same engine did
rates.py     from tokens to seconds and money
plan.py      all of it, in order; what plan.json holds
show.py      the plan as it is printed
outcome.py   the plan beside what happened, for the report
"""

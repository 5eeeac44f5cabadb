"""What a run will cost, before anything runs: `gistmill plan`.

The plan is the run itself on a few documents, with an engine that only counts: the real stages,
prompts, worker and shards, in a folder that is gone afterwards. A new method is planned as it is.

todo.py        the corpus, read once: what each document has to do, and some documents kept
rehearsal.py   the sampled documents through all stages, three times, each in another temper
costs.py       what the rehearsals' calls come to, question by question
estimate.py    the rehearsals of a sample, and what the corpus comes to
scale.py       from the sample to the corpus
rates.py       from tokens to seconds: of a former run, of the command line, of a kind of GPU
former.py      what a former run of the same engine says
plan.py        all of it, in order; what plan.json holds
hours.py       tokens by rates, among the engines there are
disk.py        the bytes that tables will take
stood.py       the calls that were made before
show.py        the plan as it is printed
numbers.py     12.5M
outcome.py     the plan beside what happened, for the report
weights.py     what each document weighs, for the run's progress
"""

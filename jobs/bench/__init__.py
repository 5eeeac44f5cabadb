"""How close the pipeline comes to its engine: `gistmill bench`. Every figure is a ratio of two
things measured in the same command, start-up apart.

figures.py    what a part comes to, and when a bar is missed
recorder.py   an engine that keeps what it was asked, and when
reading.py    one reading phase on Ray, timed and recorded
chains.py     which call waits for which
bare.py       an engine without the pipeline, in a process of its own
limit.py      limit: the phase against the bare engine; what every execution costs
schedule.py   schedule: eight simulated engines against the lower bound
cache.py      cache: cached prompt tokens against the ideal
throughput.py rates: tokens a second of one bare engine
parts.py      the parts by name, and what each of them runs
"""

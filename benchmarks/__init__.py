"""`gistmill bench`: measures how close the pipeline comes to the speed of its engine alone.

Most figures are ratios of two measurements of the same command; start-up is not counted.

figures.py    the figures that a part measures, and their thresholds
recorder.py   an engine wrapper that records every request and its time
reading.py    one reading phase on Ray, timed and recorded
chains.py     dependencies between calls, and their critical path
peers/        the same requests without gistmill: its engine alone, vLLM offline, Ray Data, a server
limit.py      limit: the phase against the bare engine; the fixed cost of an execution
schedule.py   schedule: eight simulated engines against the lower bound of the makespan
long_book.py  long: one long book on a simulated engine against the same kind of bound
side_by_side.py  peers: the phase against vLLM offline, ray.data.llm and vLLM's server
cache.py      cache: cached prompt tokens against the ideal; computed ones by the corpus's
scale.py      scale: seconds of commands on 200,000 questions; driver: the start of a large run
browser_page.py  page: seconds that a browser takes for the page of 10,000 questions
throughput.py rates: tokens per second of one bare engine
parts.py      the parts by name, and the command each runs
gpu/          make bench-gpu: parts of it one after the other, by a model without weights
"""

"""`gistmill bench`: measures how close the pipeline comes to the speed of its engine alone.

Most figures are ratios of two measurements of the same command; start-up is not counted.

parts.py         the parts by name, and the run that each measures
figures.py       the figures that a part measures, and their thresholds
recorder.py      an engine wrapper that records every request and its time
reading.py       one reading phase on Ray, timed and recorded
dependencies.py  which call waits for which, and their critical path
peers/           the same requests without gistmill: its engine alone, vLLM offline, Ray Data ...
limit.py         limit: the phase against the bare engine; rates: tokens per second of that
schedule.py      schedule: eight simulated engines against the lower bound of the makespan;
                 machines: the same on several Ray nodes
dealing.py       schedule for 64 engines, by events
side_by_side.py  peers: the phase against vLLM offline, ray.data.llm and vLLM's server
cache.py         cache: cached prompt tokens against the ideal; computed ones by the corpus's
overhead.py      units: the CPU time of a unit; driver: the start of a large run
simulated/       the simulated engine, a plugin
gpu/             make bench-gpu: parts of it one after the other, by a model without weights
"""

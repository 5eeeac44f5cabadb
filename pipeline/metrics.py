"""The counters that a run keeps in Ray's metrics, and what each counts.

All carry the tags `run` and `phase`. Ray exports a counter as `ray_<name>_total`, one series per
worker: what is added up over workers is what the run has done since its Ray was started, but for
the last seconds of each worker (Ray exports every ten, and ends workers without asking).
"""

COUNTERS = {
    "gistmill_calls": "Model calls answered",
    "gistmill_prompt_tokens": "Tokens of prompts, those the engine had cached included",
    "gistmill_cached_tokens": "Tokens of prompts that the engine had cached",
    "gistmill_reply_tokens": "Tokens of replies",
    "gistmill_units": "Units of work committed",
    "gistmill_rows": "Rows committed",
    "gistmill_problems": "Rows committed with a problem",
}

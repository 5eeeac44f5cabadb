"""The counters that a run exports through Ray's metrics, with their descriptions.

All have the tags `run` and `phase`. Ray exports a counter as `ray_<name>_total`, one series per
worker. The sum over workers is the run's total since Ray was started, short of the last seconds of
each worker: Ray exports every ten seconds and ends workers abruptly.
"""

COUNTERS = {
    "gistmill_calls": "Model calls answered",
    "gistmill_prompt_tokens": "Tokens of prompts, cached ones included",
    "gistmill_cached_tokens": "Tokens of prompts found in the engine's prefix cache",
    "gistmill_reply_tokens": "Tokens of replies",
    "gistmill_units": "Units of work committed",
    "gistmill_rows": "Rows committed",
    "gistmill_problems": "Rows committed with a problem",
}

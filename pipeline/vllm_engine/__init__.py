"""Local models through vLLM. The only folder that imports vllm, and only once an engine starts.

settings.py   the keys of engine=vllm, and what of them changes replies
starting.py   from settings to an engine, or to one line that says why there is none
failures.py   that line: the cause out of vLLM's processes, and the mend
engine.py     requests and replies
thinking.py   what a reasoning model thinks, told from its answer
tokens.py     messages by the model's chat template, as token ids
"""

from pipeline.vllm_engine.settings import VllmSettings

__all__ = ["VllmSettings"]

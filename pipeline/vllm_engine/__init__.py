"""Local models through vLLM. The only folder that imports vllm, and only once an engine starts.

settings.py         the keys of engine=vllm, and which of them change replies
loading.py          imports vLLM and loads a model, or raises one line that says why it cannot
startup_errors.py   finds the root cause in the logs of vLLM's processes, and says what to do
engine.py           sends requests to vLLM's AsyncLLM and makes replies of its outputs
thinking.py         separates a reasoning model's thinking from its answer
chat_tokenizer.py   renders messages with a model's chat template into token ids
local_tokenizer.py  a model's tokenizer from local files, without an engine
"""

from pipeline.vllm_engine.settings import VllmSettings

__all__ = ["VllmSettings"]

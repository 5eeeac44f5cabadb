"""`make bench-gpu`: the same command on a GPU, and on vLLM's CPU build with a tiny shape."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from benchmarks.gpu.dummy_model import SHAPES
from benchmarks.gpu.paper_limit import Card, card_named, decode_limit, prefill_limit
from tests.support.command import ROOT

FILES = ("rates", "limit", "cache", "peers", "paper_limit")  # by the tiny shape


def bench_gpu(*words: str | Path, **changes: str) -> "CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.gpu", *map(str, words)]
    environment = {**os.environ, "RAY_OVERRIDE_RESOURCES": '{"CPU": 8}', **changes}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_weights_are_counted_as_llamas_authors_count_them() -> None:
    # Llama 3 8B has 8,030,261,248 with its vocabulary of 128,256: the input's embedding and
    # 65 norms of 4,096 are not multiplied by.
    vocabulary, hidden = 128_256, 4096
    assert SHAPES["8b"].weights(vocabulary) == 8_030_261_248 - vocabulary * hidden - 65 * hidden


def test_the_paper_limit_is_computing_or_reading_the_weights() -> None:
    card, billion = Card("by hand", tflops=100.0, gb_per_second=1000.0), 10**9
    assert prefill_limit(card, billion) == 50_000  # 2 GFLOP a token
    # 2 GB a step; computing is what limits in the end.
    limits = [decode_limit(card, billion, sequences) for sequences in (1, 40, 256)]
    assert limits == [500, 20_000, 50_000]


def test_a_card_is_found_by_the_name_that_nvidia_smi_gives_it() -> None:
    names = {
        "NVIDIA H100 80GB HBM3": "H100", "NVIDIA H100 PCIe": "H100 PCIe", "NVIDIA L40S": "L40S",
        "NVIDIA A100-SXM4-80GB": "A100 80GB", "NVIDIA A100-SXM4-40GB": "A100",
    }  # fmt: skip
    found = {name: card.name for name in names if (card := card_named(name))}
    assert (found, card_named("NVIDIA GeForce GTX 1080")) == (names, None)


def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path) -> None:
    done = bench_gpu(tmp_path / "out", PATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bench-gpu: no GPU here: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.vllm
@pytest.mark.slow
def test_a_part_that_fails_has_its_one_line(tmp_path: Path) -> None:
    done = bench_gpu("--cpu", "--shape", "tiny", tmp_path, "engine.sequence=9")
    assert done.returncode == 1, done.stderr
    *parts, paper_limit = done.stdout.splitlines()
    assert [part.partition(":")[0] for part in parts] == [*FILES[:-1]]
    for part in parts:
        assert re.fullmatch(r"\w+: gistmill: engine\.sequence: no such key.*", part)
    assert paper_limit == f"paper_limit: {parts[0]}"


def measured(out: Path, *words: str) -> dict[str, Any]:
    """The results of all parts by a tiny model, of a meeting of QMSum; none failed."""
    short = (f"reply_tokens.{name}=12" for name in ("gist", "look_up_p", "answer"))
    done = bench_gpu("--shape", "tiny", "--minutes", "50", *words, out, "limit=1", *short)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {name: json.loads((out / f"{name}.json").read_text()) for name in FILES}
    for part in found.values():
        figures = [figure["figure"] for figure in part["figures"]]
        assert figures and all(figure is not None and figure > 0 for figure in figures), part
    return found


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.timeout(3600)
def test_all_of_it_by_the_cpu_build(tmp_path: Path) -> None:
    found = measured(tmp_path, "--cpu", "--tflops", "1", "--gb-per-second", "20")
    limit = found["paper_limit"]
    vocabulary = json.loads((tmp_path / "models/tiny/config.json").read_text())["vocab_size"]
    # Four layers of two matrices of 256 x 256 and two of 256 x 128, three of 256 x 512.
    weights = 4 * (2 * 256**2 + 2 * 256 * 128 + 3 * 256 * 512) + vocabulary * 256
    assert (limit["weights"], limit["sequences"]) == (weights, 8)
    (prefill, decode), rates = limit["figures"], found["rates"]["figures"]
    assert prefill["figure"] == pytest.approx(rates[0]["figure"] / (1e12 / (2 * weights)))
    assert decode["figure"] == pytest.approx(rates[1]["figure"] / (8 * 20e9 / (2 * weights)))


@pytest.mark.gpu
@pytest.mark.timeout(3600)
def test_all_of_it_on_a_gpu(tmp_path: Path) -> None:
    measured(tmp_path, "--tflops", "1000", "--gb-per-second", "5000")

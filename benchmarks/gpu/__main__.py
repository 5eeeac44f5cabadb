"""`python -m benchmarks.gpu`, the command of `make bench-gpu`."""

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.gpu.dummy_model import SHAPES
from benchmarks.gpu.paper_limit import Card, card_named, name_of_gpu
from benchmarks.gpu.unattended import Bench
from pipeline.core.errors import UsageError


def main() -> int:
    """Measure, and return the exit code: 1 where a part failed, 2 where there is no GPU."""
    given = _arguments()
    try:
        name = "a CPU" if given.cpu else name_of_gpu()
    except UsageError as error:
        sys.stderr.write(f"bench-gpu: {error}\n")
        return error.exit_code
    card = card_named(name)
    if given.tflops and given.gb_per_second:
        card = Card(name, given.tflops, given.gb_per_second)
    if given.cpu:
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB; else half of the memory
    bench = Bench(
        shape=given.shape,
        on_cpu=given.cpu,
        card=card,
        words=given.words,
        until=time.monotonic() + 60 * given.minutes,
    )
    return int(bool(bench.measure(given.out.resolve())))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("out", type=Path, help="the folder of the results, one JSON file a part")
    parser.add_argument("words", nargs="*", help="KEY=VALUE of every part, as limit=2")
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--cpu", action="store_true", help="by vLLM's CPU build, without a GPU")
    parser.add_argument("--minutes", type=float, default=20.0, help="that all may take")
    parser.add_argument("--tflops", type=float, help="of a card that is not listed")
    parser.add_argument("--gb-per-second", type=float, help="of a card that is not listed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.gpu`, the command of `make bench-gpu`: parts of `gistmill bench` one after
the other, by a model without weights; a JSON file each.

A part that fails, or for which no time is left, has its one line in place of figures.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import figure_of
from benchmarks.gpu.dummy_model import SHAPES, make_dummy_model
from benchmarks.gpu.paper_limit import Card, card_named, decode_limit, name_of_gpu, prefill_limit
from benchmarks.peers.measured import watch
from pipeline.core.errors import UsageError

_QMSUM = Path(__file__).parents[2] / "tests" / "data" / "qmsum" / "val.jsonl"
_ON_GPU = ("engine.start_timeout=300",)
# Required by vLLM's CPU build, and less work.
_ON_CPU = ("engine.args.enforce_eager=true",
           "engine.start_timeout=900", "engine.context_tokens=16384")  # fmt: skip
# The file, the part of bench, and True for the tiny model: its engine waits for its worker, so
# `limit` then measures how many requests a second a worker can send.
_PARTS = (
    ("rates", "rates", False),
    ("limit", "limit", False),
    ("cache", "cache", False),
    ("ceiling", "limit", True),
    ("peers", "peers", False),
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One invocation. `words`: overrides of every part; `until`: time.monotonic() of its end."""

    shape: str
    on_cpu: bool
    card: Card | None
    words: Sequence[str]
    until: float

    @property
    def sequences(self) -> int:
        return 8 if self.on_cpu else 256

    def measure(self, out: Path) -> int:
        """Write all measurements to files in `out` and print a line each; returns the number of
        failures."""
        out.mkdir(parents=True, exist_ok=True)
        failures = 0
        for name, part, is_tiny in _PARTS:
            if is_tiny and self.shape == "tiny":
                continue  # it is `limit`
            model = _model(out / "models", "tiny" if is_tiny else self.shape)
            failures += _write(out / f"{name}.json", self._part(part, model, out / f"{name}.log"))
        return failures + _write(out / "paper_limit.json", self._paper_limit(out))

    def _part(self, part: str, model: Path, log: Path) -> dict[str, Any]:
        """The part's command with its figures, or with the error line where it failed."""
        words = ["corpus=qmsum", f"corpus.path={_QMSUM}", "engine=vllm", f"engine.model={model}",
                 "engine.args.load_format=dummy", f"engine.sequences={self.sequences}",
                 *(_ON_CPU if self.on_cpu else _ON_GPU), *self.words]  # fmt: skip
        bench = [sys.executable, "-m", "gistmill", "bench", part]
        command = [*bench, *words, "--pairs", "1", "--json"]
        begun = time.monotonic()
        try:
            watch(command, log, self.until - begun)
        except subprocess.TimeoutExpired:
            return {"command": command, "error": "no time is left"}
        except subprocess.CalledProcessError as error:
            if error.returncode != 3:  # 3: a bar is missed
                return {"command": command, "error": _last_line(log)}
        figures = json.loads(log.with_suffix(".out").read_text(encoding="utf-8"))
        return {"command": command, "seconds": time.monotonic() - begun, "figures": figures}

    def _paper_limit(self, out: Path) -> dict[str, Any]:
        """The measured rates over those that the card's data sheet allows."""
        rates = json.loads((out / "rates.json").read_text(encoding="utf-8"))
        if "error" in rates:
            return {"error": f"rates: {rates['error']}"}
        if self.card is None:
            return {"error": "no data sheet of this card: give --tflops and --gb-per-second"}
        config = (out / "models" / self.shape / "config.json").read_text(encoding="utf-8")
        weights = SHAPES[self.shape].weights(json.loads(config)["vocab_size"])
        limits = {
            "prompt tokens a second": prefill_limit(self.card, weights),
            "reply tokens a second": decode_limit(self.card, weights, self.sequences),
        }
        measured = [figure["figure"] for figure in rates["figures"]]
        figures = [
            figure_of("paper limit", f"{what} / the card's", [rate / most])
            for rate, (what, most) in zip(measured, limits.items(), strict=True)
        ]
        return {
            "card": asdict(self.card),
            "weights": weights,
            "sequences": self.sequences,
            "limits": limits,
            "figures": [asdict(figure) for figure in figures],
        }


def _model(models: Path, shape: str) -> Path:
    """The model's folder, made if it is missing; its tokenizer is trained on QMSum."""
    folder = models / shape
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with _QMSUM.open(encoding="utf-8") as lines:
            turns = [turn for line in lines for turn in json.loads(line)["meeting_transcripts"]]
        make_dummy_model(folder, SHAPES[shape], [turn["content"] for turn in turns])
    return folder


def _write(file: Path, found: dict[str, Any]) -> bool:
    """Write and print the result of a part; True if it failed."""
    file.write_text(json.dumps(found, indent=1), encoding="utf-8")
    said = found.get("error") or f"{len(found['figures'])} figures in {file}"
    sys.stdout.write(f"{file.stem}: {said}\n")
    sys.stdout.flush()
    return "error" in found


def _last_line(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]


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

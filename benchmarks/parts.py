"""The parts of `gistmill bench` by name, and the run that each measures."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import browser_page as page_part
from benchmarks import cache as cache_part
from benchmarks import long_book as long_part
from benchmarks import machines as machines_part
from benchmarks import scale as scale_part
from benchmarks import schedule as schedule_part
from benchmarks import side_by_side as peers_part
from benchmarks import unit_cost as units_part
from benchmarks.browser_page import page
from benchmarks.cache import cache
from benchmarks.figures import Figure
from benchmarks.limit import limit
from benchmarks.long_book import long_book
from benchmarks.machines import machines
from benchmarks.scale import driver, scale
from benchmarks.schedule import schedule
from benchmarks.side_by_side import peers
from benchmarks.throughput import rates
from benchmarks.unit_cost import units
from jobs.config.run_config import RunConfig
from jobs.graph.read_run import read_run
from pipeline.core.errors import UsageError

# One unit holds all questions of a document, so that the phase is one execution.
_ALWAYS = ("questions_per_unit=1000000",)
_QMSUM = ("corpus=qmsum", "rater=none", "engine=vllm", "reply_format=constrained")


@dataclass(frozen=True)
class Part:
    """`words` are its default overrides; those of the command line take precedence."""

    words: tuple[str, ...]
    measure: Callable[[RunConfig, Path, int], list[Figure]]


_THREE = "methods=gist_only,readagent_p(max_pages=3),bm25(top_k=3)"
PARTS = {
    "limit": Part((*_QMSUM, _THREE), limit),
    "schedule": Part(schedule_part.WORDS, schedule),
    "machines": Part(machines_part.WORDS, machines),
    "long": Part(long_part.WORDS, long_book),
    "cache": Part((*_QMSUM, *cache_part.WORDS), cache),
    "peers": Part((*_QMSUM, _THREE, *peers_part.WORDS), peers),
    "units": Part(units_part.WORDS, units),
    "driver": Part(scale_part.DRIVER_WORDS, driver),
    "scale": Part(scale_part.WORDS, scale),
    "page": Part(page_part.WORDS, page),
    "rates": Part(("engine=vllm", "rater=none"), rates),
}


def bench(words: Sequence[str], pairs: int) -> list[Figure]:
    """The figures of the parts named in `words`, in that order; words with `=` are overrides.

    Each is a median over `pairs` repetitions. Raises UsageError for an unknown or missing part and
    for overrides that the part cannot use.
    """
    names = [word for word in words if "=" not in word]
    overrides = [word for word in words if "=" in word]
    for name in names:
        if name not in PARTS:
            raise UsageError(f"{name}: not a part of bench; there are {', '.join(PARTS)}")
    if not names:
        raise UsageError(f"name what to measure: {', '.join(PARTS)}")
    # Ray would give a worker a thread of torch for each CPU that it claims, and so a slower engine
    # on CPUs than those it is measured against, which have them all.
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # else vLLM takes one core less
    found = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="gistmill-bench-") as folder:
            config = part_config(name, overrides, Path(folder))
            found += PARTS[name].measure(config, Path(folder), pairs)
    return found


def part_config(name: str, overrides: Sequence[str], folder: Path) -> RunConfig:
    """The config that the part runs. For `schedule` and `long` a corpus is written to `folder`."""
    own = PARTS[name].words
    if name in ("schedule", "machines", "long"):
        for word in overrides:
            if word.startswith("corpus"):
                raise UsageError(f"{word}: {name} writes its own corpus; leave it out")
        own = (*own, f"corpus.path={folder / 'corpus'}")
    given = {word.partition("=")[0] for word in overrides}
    sizes = {"scale": scale_part.SIZES, "driver": scale_part.SIZES[:1]}.get(name)
    if sizes and (others := sorted(given - {*sizes})):
        raise UsageError(f"{others[0]}: {name} takes {' and '.join(sizes)}; leave it out")
    kept = [word for word in (*own, *_ALWAYS) if word.partition("=")[0] not in given]
    config = read_run([*kept, *overrides]).config
    if name == "schedule":
        engines = config.engine.max_workers or 1
        num_documents = config.limit or schedule_part.NUM_DOCUMENTS
        sequences = engines * config.engine.sequences
        schedule_part.write_corpus(folder / "corpus", num_documents, sequences)
    if name == "long":
        long_part.write_book(folder / "corpus", long_part.NUM_WORDS, long_part.NUM_QUESTIONS)
    return config

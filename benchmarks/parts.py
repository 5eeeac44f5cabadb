"""The parts of `gistmill bench` by name, and the run that each measures."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import overhead
from benchmarks import schedule as load_balancing
from benchmarks.cache import WORDS as CACHE_WORDS
from benchmarks.cache import cache
from benchmarks.figures import Figure
from benchmarks.limit import limit, rates
from benchmarks.side_by_side import WORDS as PEERS_WORDS
from benchmarks.side_by_side import peers
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError

# One unit holds all questions of a document, so that the phase is one execution. Any part may be
# measured by the simulated engine.
_ALWAYS = ("questions_per_unit=1000000", f"plugins={Path(__file__).parent / 'simulated'}")
_QMSUM = ("corpus=qmsum", "rater=none", "engine=vllm", "reply_format=constrained")
_THREE = "methods=gist_only,readagent_p(max_pages=3),bm25(top_k=3)"


@dataclass(frozen=True)
class Part:
    """`words` are its default overrides; those of the command line take precedence."""

    words: tuple[str, ...]
    measure: Callable[[RunConfig, Path, int], list[Figure]]


PARTS = {
    "limit": Part((*_QMSUM, _THREE), limit),
    "schedule": Part(load_balancing.SCHEDULE_WORDS, load_balancing.schedule),
    "machines": Part(load_balancing.WORDS, load_balancing.machines),
    "cache": Part((*_QMSUM, *CACHE_WORDS), cache),
    "peers": Part((*_QMSUM, _THREE, *PEERS_WORDS), peers),
    "units": Part(overhead.UNITS_WORDS, overhead.units),
    "driver": Part((*overhead.DRIVER_WORDS, overhead.DRIVER_SIZE), overhead.driver),
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
    # Ray would limit torch in a worker to one thread per CPU that it claims: on CPUs, the engine
    # would be slower than its peers, which use all of them.
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # else vLLM takes one core less
    figures = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="gistmill-bench-") as folder:
            config = part_config(name, overrides, Path(folder))
            figures += PARTS[name].measure(config, Path(folder), pairs)
    return figures


def part_config(name: str, overrides: Sequence[str], folder: Path) -> RunConfig:
    """The config that the part runs. For `schedule` a corpus is written to `folder`."""
    own = PARTS[name].words
    if name in ("schedule", "machines"):
        for word in overrides:
            if word.startswith("corpus"):
                raise UsageError(f"{word}: {name} writes its own corpus; leave it out")
        own = (*own, f"corpus.path={folder / 'corpus'}")
    given = {word.partition("=")[0] for word in overrides}
    size = overhead.DRIVER_SIZE.partition("=")[0]
    if name == "driver" and (others := sorted(given - {size})):
        raise UsageError(f"{others[0]}: driver takes {size}; leave it out")
    kept = [word for word in (*own, *_ALWAYS) if word.partition("=")[0] not in given]
    config = read_run([*kept, *overrides]).config
    if name == "schedule":
        engines = config.engine.max_workers or 1
        num_documents = config.limit or load_balancing.NUM_DOCUMENTS
        sequences = engines * config.engine.sequences
        load_balancing.write_corpus(folder / "corpus", num_documents, sequences)
    return config

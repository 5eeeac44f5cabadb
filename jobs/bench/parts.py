"""The parts of `gistmill bench` by name, and what each of them runs."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.bench import schedule as schedule_part
from jobs.bench.cache import cache
from jobs.bench.figures import Figure
from jobs.bench.limit import limit
from jobs.bench.schedule import schedule
from jobs.bench.throughput import rates
from jobs.config import RunConfig, read_config
from pipeline.errors import UsageError

# All of a document's questions in one unit: the phase is one execution.
_ALWAYS = ("questions_per_unit=1000000",)
_QMSUM = ("corpus=qmsum", "rater=none", "engine=vllm", "reply_format=constrained")


@dataclass(frozen=True)
class Part:
    """`words` are what it runs unless the command line says otherwise."""

    words: tuple[str, ...]
    measure: Callable[[RunConfig, Path, int], list[Figure]]


_THREE = "methods=gist_only,readagent_p(max_pages=3),bm25(top_k=3)"
PARTS = {
    "limit": Part((*_QMSUM, _THREE), limit),
    "schedule": Part(schedule_part.WORDS, schedule),
    "cache": Part((*_QMSUM, "methods=readagent_p(max_pages=3)"), cache),
    "rates": Part(("engine=vllm", "rater=none"), rates),
}


def bench(words: Sequence[str], pairs: int) -> list[Figure]:
    """The figures of the parts named in `words`, in that order; the other words are overrides.

    Raises UsageError where there is no part, or a word makes none of its sense.
    """
    names = [word for word in words if "=" not in word]
    overrides = [word for word in words if "=" in word]
    for name in names:
        if name not in PARTS:
            raise UsageError(f"{name}: no part of bench; there are {', '.join(PARTS)}")
    if not names:
        raise UsageError(f"name what to measure: {', '.join(PARTS)}")
    found = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="gistmill-bench-") as folder:
            config = part_config(name, overrides, Path(folder))
            found += PARTS[name].measure(config, Path(folder), pairs)
    return found


def part_config(name: str, overrides: Sequence[str], folder: Path) -> RunConfig:
    """What the part runs; its corpus is written where it has one of its own."""
    own = PARTS[name].words
    if name == "schedule":
        for word in overrides:
            if word.startswith("corpus"):
                raise UsageError(f"{word}: schedule writes its own corpus; leave it out")
        own = (*own, f"corpus.path={folder / 'corpus'}")
    given = {word.partition("=")[0] for word in overrides}
    kept = [word for word in (*own, *_ALWAYS) if word.partition("=")[0] not in given]
    config = read_config([*kept, *overrides])
    if name == "schedule":
        engines = config.engine.max_workers or 1
        num_documents = config.limit or schedule_part.NUM_DOCUMENTS
        sequences = engines * config.engine.sequences
        schedule_part.write_corpus(folder / "corpus", num_documents, sequences)
    return config

"""Load balancing: the makespan against a lower bound for any schedule. Measured with eight
simulated engines on this machine's Ray; with 64 engines by simulated events alone; and on a Ray
cluster of several nodes, all on this machine, with an engine on each node, the driver's included.

Document lengths are skewed. The longest document's chain of calls takes half as long as the engines
need for everything: started late it ends late, so documents in random order miss the bar.
"""

import functools
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from benchmarks.dealing import Dealing, shortest
from benchmarks.dependencies import longest_chain
from benchmarks.figures import Bar, Figure, figure_of
from benchmarks.reading import Order, Reading, as_planned, read
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import read_run
from pipeline.core.calls import Call
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
from pipeline.work.units import DocumentWork

NUM_DOCUMENTS = 400
_AT_MOST = 1.10
_LONGEST = 30  # pages; each is a pagination call that waits for the previous page's, and a gist
_PAGE_WORDS, _PARAGRAPH_WORDS = 600, 100  # the generic family ends a page at 280 to 600 words
_SIGMA = 0.8  # of the lognormal lengths
_SEED = 7
_MANY, _PER_ENGINE, _SEQUENCES = 64, 25, 8  # engines, documents and sequences of each
_MACHINES = (2, 4, 8)

# Free replies take equally long, about a second; a constrained page end is one of a few tokens.
WORDS = (
    "corpus=tables", "rater=none", "methods=gist_only", "engine=simulated", "reply_format=free",
)  # fmt: skip
SCHEDULE_WORDS = (*WORDS, "engine.min_workers=8", "engine.max_workers=8")


def schedule(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Makespan over the lower bound, longest documents first and in random order."""
    engine = with_rates("schedule", config)
    orders: dict[str, Order] = {"longest": as_planned, "random": shuffled}
    ratios: dict[str, list[float]] = {name: [] for name in orders}
    bounds = []
    for pair in range(pairs):
        for name, order in orders.items():
            reading = read(config, folder / f"schedule-{name}-{pair}", order)
            bounds.append(lower_bound(reading, engine))
            ratios[name].append(reading.seconds / bounds[-1])
    return [
        figure_of("schedule", "makespan / lower bound", ratios["longest"], ("at most", _AT_MOST)),
        figure_of("schedule", "the same in random order", ratios["random"], ("over", _AT_MOST)),
        figure_of("schedule", "lower bound, seconds", bounds),
        *_of_many(),
    ]


def _of_many() -> list[Figure]:
    """Both orders for more engines than this machine can run, with few documents each."""
    pages = lengths(_MANY * _PER_ENGINE, _MANY * _SEQUENCES)
    bound = shortest(pages, _MANY, _SEQUENCES)
    longest = sorted(pages, reverse=True)
    found: dict[str, tuple[list[int], Bar]] = {
        "longest first": (longest, "at most"),
        "in random order": (random.Random(_SEED).sample(longest, len(longest)), "over"),
    }
    return [
        figure_of(
            "schedule",
            f"{_MANY} engines, {_PER_ENGINE} documents each, {name}",
            [Dealing(dealt, _MANY, _SEQUENCES).seconds() / bound],
            (how, _AT_MOST),
        )
        for name, (dealt, how) in found.items()
    ]


def machines(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Makespan over the lower bound on 2, 4 and 8 machines, longest documents first."""
    return [_on_machines(config, folder / f"of-{num}", num, pairs) for num in _MACHINES]


def _on_machines(config: RunConfig, folder: Path, num: int, pairs: int) -> Figure:
    engine = with_rates("machines", config)
    write_corpus(folder / "corpus", num * _PER_ENGINE, num * engine.sequences)
    of_engine = {"min_workers": num, "max_workers": num, "gpus_per_worker": 1}
    ratios: list[float] = []
    with _nodes(num) as address:
        own = config.model_copy(
            update={
                "cluster": read_run(["cluster=ray", f"cluster.address={address}"]).config.cluster,
                "corpus": config.corpus.model_copy(update={"path": as_path(folder / "corpus")}),
                "engine": engine.model_copy(update=of_engine),
            }
        )
        for pair in range(pairs):
            reading = read(own, folder / f"warehouse-{pair}")
            ratios.append(reading.seconds / lower_bound(reading, engine))
    what = f"makespan / lower bound on {num} machines"
    return figure_of("machines", what, ratios, ("at most", _AT_MOST))


@contextmanager
def _nodes(num: int) -> Iterator[str]:
    """Start a Ray cluster of `num` nodes with a nominal GPU each; yields its address."""
    ray.shutdown()  # of another part
    head = {"num_cpus": 2, "num_gpus": 1, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(num - 1):
            cluster.add_node(num_cpus=2, num_gpus=1)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def with_rates(part: str, config: RunConfig) -> EngineSettings:
    """The config's engine. Raises UsageError for one whose settings state no token rates."""
    if config.engine.token_rates() is None:
        name = config.engine.name
        raise UsageError(f"engine={name}: {part} needs engine=simulated; leave it out")
    return config.engine


def lower_bound(reading: Reading, engine: EngineSettings) -> float:
    """Seconds that no schedule can beat: the larger of all work spread evenly over the engines'
    sequences and the longest chain of dependent calls."""
    seconds = functools.partial(work, engine)
    total = sum(seconds(one.call) for one in reading.made)
    sequences = engine.sequences * len(reading.workers)
    return max(total / sequences, longest_chain(reading.made, seconds))


def work(engine: EngineSettings, call: Call) -> float:
    """The least seconds that a call occupies one of the engine's sequences."""
    rates = engine.token_rates()
    assert rates is not None, "see with_rates"
    prefill = (call.prompt_tokens - call.cached_tokens) / rates[0]
    return prefill + call.reply_tokens * engine.sequences / rates[1]


def shuffled(documents: Sequence[DocumentWork]) -> Sequence[DocumentWork]:
    """A random order, the same each time."""
    return random.Random(_SEED).sample(documents, len(documents))


def write_corpus(folder: Path, num_documents: int, sequences: int) -> None:
    """Write documents.jsonl of skewed lengths for so many sequences; no questions."""
    folder.mkdir(parents=True)
    with (folder / "documents.jsonl").open("w") as file:
        for number, pages in enumerate(lengths(num_documents, sequences)):
            row = {"document_id": f"d{number:03}", "text": _text(number, pages)}
            file.write(json.dumps(row) + "\n")


def lengths(num_documents: int, sequences: int) -> list[int]:
    """The number of pages of each document, lognormal.

    A page is two calls, one of them in the chain. With `sequences` x (longest + 1) pages the
    longest chain is half of work / sequences.
    """
    draw = random.Random(_SEED)
    shares = [draw.lognormvariate(0, _SIGMA) for _ in range(num_documents - 1)]
    wanted = sequences * (_LONGEST + 1) - _LONGEST
    low, high = 0.0, float(wanted)
    for _ in range(60):
        scale = (low + high) / 2
        low, high = (scale, high) if sum(_pages(scale, shares)) < wanted else (low, scale)
    return [_LONGEST, *_pages(low, shares)]


def _pages(scale: float, shares: Sequence[float]) -> list[int]:
    return [min(_LONGEST, max(1, round(scale * share))) for share in shares]


def _text(number: int, num_pages: int) -> str:
    """Whole pages of paragraphs, unique to the document so that no prefix cache helps."""
    paragraphs = range(num_pages * _PAGE_WORDS // _PARAGRAPH_WORDS)
    rest = " ".join(f"word{i}" for i in range(_PARAGRAPH_WORDS - 1))
    return "\n\n".join(f"{number}.{paragraph} {rest}" for paragraph in paragraphs)

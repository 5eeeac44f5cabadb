"""Load balancing: the makespan against a lower bound for any schedule, of eight simulated engines
on this machine's Ray, and of 64 by events alone.

Document lengths are skewed. The longest document's chain of calls takes half as long as the engines
need for everything: started late it ends late, so documents in random order miss the bar.
"""

import functools
import json
import random
from collections.abc import Sequence
from pathlib import Path

from benchmarks.chains import longest_chain
from benchmarks.dealing import Dealing, shortest
from benchmarks.figures import Bar, Figure, figure_with_bar, figure_without_bar
from benchmarks.reading import Order, Reading, as_planned, read
from jobs.config.run_config import RunConfig
from pipeline.core.calls import Call
from pipeline.core.errors import UsageError
from pipeline.engines.simulated import SimulatedSettings
from pipeline.work.executions import DocumentWork

NUM_DOCUMENTS = 400
AT_MOST = 1.10
_LONGEST = 30  # pages; each is a pagination call that waits for the previous page's, and a gist
_PAGE_WORDS, _PARAGRAPH_WORDS = 600, 100  # the generic family ends a page at 280 to 600 words
_SIGMA = 0.8  # of the lognormal lengths
_SEED = 7
_MANY, _PER_ENGINE, _SEQUENCES = 64, 25, 8  # engines, documents and sequences of each

WORDS = (
    "corpus=tables", "rater=none", "methods=gist_only", "engine=simulated",
    "engine.min_workers=8", "engine.max_workers=8",
)  # fmt: skip


def schedule(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Makespan over the lower bound, longest documents first and in random order."""
    engine = config.engine
    if not isinstance(engine, SimulatedSettings):
        raise UsageError(f"engine={engine.name}: schedule needs engine=simulated; leave it out")
    orders: dict[str, Order] = {"longest": as_planned, "random": shuffled}
    ratios: dict[str, list[float]] = {name: [] for name in orders}
    bounds = []
    for pair in range(pairs):
        for name, order in orders.items():
            reading = read(config, folder / f"schedule-{name}-{pair}", order)
            bounds.append(lower_bound(reading, engine))
            ratios[name].append(reading.seconds / bounds[-1])
    return [
        figure_with_bar(
            "schedule", "makespan / lower bound", ratios["longest"], ("at most", AT_MOST)
        ),
        figure_with_bar(
            "schedule", "the same in random order", ratios["random"], ("over", AT_MOST)
        ),
        figure_without_bar("schedule", "lower bound, seconds", bounds),
        *_of_many(),
    ]


def _of_many() -> list[Figure]:
    """Both orders for more engines than this machine has room for, with few documents each."""
    pages = lengths(_MANY * _PER_ENGINE, _MANY * _SEQUENCES)
    bound = shortest(pages, _MANY, _SEQUENCES)
    longest = sorted(pages, reverse=True)
    found: dict[str, tuple[list[int], Bar]] = {
        "longest first": (longest, "at most"),
        "in random order": (random.Random(_SEED).sample(longest, len(longest)), "over"),
    }
    return [
        figure_with_bar(
            "schedule",
            f"{_MANY} engines, {_PER_ENGINE} documents each, {name}",
            [Dealing(dealt, _MANY, _SEQUENCES).seconds() / bound],
            (how, AT_MOST),
        )
        for name, (dealt, how) in found.items()
    ]


def lower_bound(reading: Reading, engine: SimulatedSettings) -> float:
    """Seconds that no schedule can beat: the larger of all work spread evenly over the engines'
    sequences and the longest chain of dependent calls."""
    seconds = functools.partial(work, engine)
    total = sum(seconds(one.call) for one in reading.made)
    sequences = engine.sequences * len(reading.workers)
    return max(total / sequences, longest_chain(reading.made, seconds))


def work(engine: SimulatedSettings, call: Call) -> float:
    """The least seconds that a call occupies one of the engine's sequences."""
    prefill = (call.prompt_tokens - call.cached_tokens) / engine.prefill_tokens_per_second
    return prefill + call.reply_tokens / engine.decode_tokens_per_second


def shuffled(documents: Sequence[DocumentWork]) -> Sequence[DocumentWork]:
    """A random order, the same each time."""
    return random.Random(_SEED).sample(documents, len(documents))


def write_corpus(folder: Path, num_documents: int, sequences: int) -> None:
    """Write documents.jsonl of skewed lengths, work for `sequences` sequences; no questions."""
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

"""One long book: its makespan on one simulated engine against that of pages chosen in turn.

A page's end is chosen after that of the page before, so the choices are a chain, unless an idle
engine also chooses from guessed starts further on. A run that does not, or that waits for the last
page before it asks for gists, misses the bar.
"""

import json
import random
from pathlib import Path

from benchmarks.figures import Figure, figure_with_bar, figure_without_bar
from benchmarks.reading import read
from benchmarks.schedule import lower_bound
from jobs.config.run_config import RunConfig
from pipeline.core.errors import UsageError
from pipeline.engines.simulated import SimulatedSettings

NUM_WORDS, NUM_QUESTIONS = 350_000, 30
_AT_MOST = 0.90
_MEDIAN, _SIGMA = 55, 0.7  # words of the lognormal paragraphs
_FEWEST, _MOST = 5, 400
_SEED = 7

WORDS = (
    "corpus=tables", "rater=none", "methods=readagent_p", "engine=simulated",
    "engine.min_workers=1", "engine.max_workers=1", "engine.sequences=64",
    "reply_format=constrained",
)  # fmt: skip


def long_book(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Makespan over the lower bound of pages chosen in turn, both in seconds."""
    engine = config.engine
    if not isinstance(engine, SimulatedSettings):
        raise UsageError(f"engine={engine.name}: long needs engine=simulated; leave it out")
    readings = [read(config, folder / f"long-{pair}") for pair in range(pairs)]
    bounds = [lower_bound(reading, engine) for reading in readings]
    seconds = [reading.seconds for reading in readings]
    ratios = [spent / bound for spent, bound in zip(seconds, bounds, strict=True)]
    return [
        figure_with_bar("long", "makespan / lower bound in turn", ratios, ("at most", _AT_MOST)),
        figure_without_bar("long", "makespan, seconds", seconds),
        figure_without_bar("long", "lower bound in turn, seconds", bounds),
    ]


def write_book(folder: Path, num_words: int, num_questions: int) -> None:
    """Write documents.jsonl, one book of paragraphs of skewed lengths, and its questions.jsonl."""
    folder.mkdir(parents=True)
    book = {"document_id": "book", "text": "\n\n".join(paragraphs(num_words))}
    asked = [
        {"document_id": "book", "question_id": f"q{n}", "question": f"What happens in part {n}?"}
        for n in range(num_questions)
    ]
    for name, rows in (("documents", [book]), ("questions", asked)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def paragraphs(num_words: int) -> list[str]:
    """Paragraphs of so many words together, the same each time, no two of them equal."""
    draw = random.Random(_SEED)
    found: list[str] = []
    left = num_words
    while left > 0:
        drawn = round(_MEDIAN * draw.lognormvariate(0, _SIGMA))
        size = min(max(drawn, _FEWEST), _MOST, left)
        found.append(" ".join([f"part{len(found)}", *(f"word{n}" for n in range(size - 1))]))
        left -= size
    return found

"""Measure a run's reading phase against the bare engine replaying the same requests in dependency
order; the CPU time of the pipeline itself; and the fixed cost of an execution."""

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.chains import Made, dependencies
from benchmarks.figures import Figure, figure_with_bar, figure_without_bar
from benchmarks.peers.bare import Script, on_engine, replay
from benchmarks.reading import Reading, read
from benchmarks.recorder import Sent
from jobs.config.run_config import RunConfig
from jobs.graph.read_run import read_run
from pipeline.asking.readers import num_slots

_AT_MOST = 1.10


def limit(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds of the phase over those of the bare engine, in dependency order and with all requests
    at once; CPU seconds outside the engine; requests per second; seconds and CPU seconds of a
    minimal execution."""
    ratios, at_once, cpu, rates, fixed = [], [], [], [], []
    for pair in range(pairs):
        reading = read(config, folder / f"limit-{pair}")
        engine, script = reading.engine, script_of(reading.made, reading.sent())
        num = len(script.requests)
        bare, bare_cpu = on_engine(engine, replay, script, num_slots(engine))
        free, _ = on_engine(engine, replay, script.all_at_once(), num)
        ratios.append(reading.seconds / bare)
        at_once.append(reading.seconds / free)
        cpu.append(1000 * (reading.cpu - bare_cpu) / num)
        rates.append(num / reading.seconds)
        fixed.append(smallest_reading(config, folder / f"fixed-{pair}"))
    return [
        figure_with_bar(
            "limit", "seconds of the run / of the bare engine", ratios, ("at most", _AT_MOST)
        ),
        figure_without_bar("limit", "seconds of the run / of all requests at once", at_once),
        figure_without_bar("limit", "CPU seconds outside the engine, per 1,000 requests", cpu),
        figure_without_bar("limit", "requests a second", rates),
        figure_without_bar(
            "limit", "fixed seconds of an execution", [one.all_seconds for one in fixed]
        ),
        figure_without_bar(
            "limit", "fixed CPU seconds of an execution", [one.all_cpu for one in fixed]
        ),
    ]


def smallest_reading(config: RunConfig, folder: Path) -> Reading:
    """An execution over one document of one word with the extractive engine, which answers at once:
    all its time is the fixed cost of any execution."""
    folder.mkdir(parents=True)
    (folder / "documents.jsonl").write_text(json.dumps({"document_id": "d", "text": "Word."}))
    own = ("corpus=tables", f"corpus.path={folder}", "engine=extractive", "rater=none",
           "methods=gist_only", "engine.max_workers=1")  # fmt: skip
    tiny = read_run(own).config.model_copy(update={"cluster": config.cluster})
    return read(tiny, folder / "warehouse")


def script_of(made: Sequence[Made], sent: Sequence[Sent]) -> Script:
    """The requests of `made` in the order they were first sent, with their dependencies."""
    first = {one.request_sha: one for one in reversed(sent)}
    in_order = sorted(made, key=lambda one: first[one.call.request_sha].begun)
    return Script([first[one.call.request_sha].request for one in in_order], dependencies(in_order))

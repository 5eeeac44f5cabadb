"""A run's reading phase against the bare engine, given the same requests in the same order of
dependence; and against one request at a time, as the authors' notebook does."""

from collections.abc import Sequence
from pathlib import Path

from jobs.bench.bare import Script, on_engine, replay
from jobs.bench.chains import Made, waits
from jobs.bench.figures import Figure, barred, plain
from jobs.bench.reading import Reading, read
from jobs.bench.recorder import Sent
from jobs.config import RunConfig
from pipeline.engines import num_slots

_BAR = 1.10


def limit(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Ratios of seconds: the phase to the bare engine, and to it with all requests at once."""
    ratios, at_once = [], []
    slots = num_slots(config.engine)
    for pair in range(pairs):
        reading = read(config, folder / f"limit-{pair}")
        script = script_of(reading.made, reading.sent())
        bare = on_engine(config.engine, replay, script, slots)
        free = on_engine(config.engine, replay, script.all_at_once(), len(script.requests))
        ratios.append(reading.seconds / bare)
        at_once.append(reading.seconds / free)
    return [
        barred("limit", "seconds of the run / of the bare engine", ratios, ("at most", _BAR)),
        plain("limit", "seconds of the run / of all requests at once", at_once),
    ]


def sequential(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """One request at a time on the document with the median number of calls: its seconds a
    request, over those of the whole run."""
    ratios = []
    for pair in range(pairs):
        reading = read(config, folder / f"sequential-{pair}")
        script = script_of(middle(reading.made), reading.sent()).one_at_a_time()
        alone = on_engine(config.engine, replay, script, 1) / len(script.requests)
        ratios.append(alone / _seconds_a_request(reading))
    return [plain("sequential", "seconds a request, one at a time / in the run", ratios)]


def _seconds_a_request(reading: Reading) -> float:
    return reading.seconds / len(reading.sent())


def script_of(made: Sequence[Made], sent: Sequence[Sent]) -> Script:
    """The requests of `made`, those first that were sent first."""
    first = {one.request_sha: one for one in reversed(sent)}
    in_order = sorted(made, key=lambda one: first[one.call.request_sha].begun)
    return Script([first[one.call.request_sha].request for one in in_order], waits(in_order))


def middle(made: Sequence[Made]) -> list[Made]:
    """The calls of the document with the median number of them."""
    documents: dict[str, list[Made]] = {}
    for one in made:
        documents.setdefault(one.call.document_id, []).append(one)
    by_size = sorted(documents.values(), key=len)
    return by_size[len(by_size) // 2]

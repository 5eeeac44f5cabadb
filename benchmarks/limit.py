"""The bare engine: its rates, and a run's reading phase against it, replaying the same requests
in dependency order; the CPU time of the pipeline itself; and the fixed cost of an execution."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.dependencies import Made, dependencies
from benchmarks.figures import Figure, figure_of
from benchmarks.peers.bare import Script, on_engine, replay
from benchmarks.reading import Reading, read
from benchmarks.recorder import Sent
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import read_run
from pipeline.asking.ask import num_slots
from pipeline.core.engine import Engine, Request

_AT_MOST = 1.10
_PROMPTS_PER_SEQUENCE, _MOST_PROMPTS = 4, 512
_PROMPT_WORDS, _REPLY_TOKENS = 1000, 256


def limit(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds of the phase over those of the bare engine, in dependency order and with all
    requests at once; CPU seconds outside the engine; requests per second; wall and CPU seconds
    of a minimal execution."""
    ratios, at_once, cpu, requests, fixed = [], [], [], [], []
    for pair in range(pairs):
        reading = read(config, folder / f"limit-{pair}")
        engine, script = reading.engine, script_of(reading.made, reading.sent())
        num = len(script.requests)
        bare, bare_cpu = on_engine(engine, replay, script, num_slots(engine))
        free, _ = on_engine(engine, replay, script.all_at_once(), num)
        ratios.append(reading.seconds / bare)
        at_once.append(reading.seconds / free)
        cpu.append(1000 * (reading.cpu - bare_cpu) / num)
        requests.append(num / reading.seconds)
        fixed.append(smallest_reading(config, folder / f"fixed-{pair}"))
    without_bar = {
        "seconds of the run / of all requests at once": at_once,
        "CPU seconds outside the engine, per 1,000 requests": cpu,
        "requests a second": requests,
        "fixed seconds of an execution": [one.all_seconds for one in fixed],
        "fixed CPU seconds of an execution": [one.all_cpu for one in fixed],
    }
    return [
        figure_of(
            "limit", "seconds of the run / of the bare engine", ratios, ("at most", _AT_MOST)
        ),
        *(figure_of("limit", what, values) for what, values in without_bar.items()),
    ]


def smallest_reading(config: RunConfig, folder: Path) -> Reading:
    """An execution over one document of one word with the extractive engine, which answers at
    once: all its time is the fixed cost of any execution."""
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


def rates(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Uncached prompt tokens per second with replies of one token, and reply tokens per second
    with prompts of a few words, in the units of `gistmill plan --rates`; with as many concurrent
    requests as a run sends to the engine."""
    engine = config.engine
    num = min(_MOST_PROMPTS, _PROMPTS_PER_SEQUENCE * engine.sequences)
    measurements: list[tuple[float, float]] = on_engine(
        engine, measured_rates, num, num_slots(engine), pairs
    )
    prefill, decode = zip(*measurements, strict=True)
    return [
        figure_of("rates", "prompt tokens a second (PREFILL)", prefill),
        figure_of("rates", "reply tokens a second (DECODE)", decode),
    ]


async def measured_rates(
    engine: Engine, num: int, at_once: int, pairs: int
) -> list[tuple[float, float]]:
    """Both rates, measured `pairs` times with `num` requests each; no prompts share a prefix."""
    draw = Random(0)
    measurements = []
    for _ in range(pairs):
        long = [_request(draw, _PROMPT_WORDS, 1) for _ in range(num)]
        short = [_request(draw, 8, _REPLY_TOKENS) for _ in range(num)]
        seconds, prompt, _ = await _answered(engine, long, at_once)
        prefill = prompt / seconds
        seconds, _, reply = await _answered(engine, short, at_once)
        measurements.append((prefill, reply / seconds))
    return measurements


def _request(draw: Random, num_words: int, reply_tokens: int) -> Request:
    page = " ".join(f"{draw.randrange(10**4)}" for _ in range(num_words))
    content = f"{page}\n\nGo on with this list of numbers for as long as you can."
    return Request(
        prompt="",
        fields=None,
        messages=({"role": "user", "content": content},),
        max_reply_tokens=reply_tokens,
    )


async def _answered(
    engine: Engine, requests: Sequence[Request], at_once: int
) -> tuple[float, int, int]:
    """Seconds until all are answered, and their uncached prompt tokens and reply tokens."""
    slots = asyncio.Semaphore(at_once)

    async def one(request: Request) -> tuple[int, int]:
        async with slots:
            reply = await engine.generate(request)
        return reply.prompt_tokens - reply.cached_tokens, reply.reply_tokens

    start = time.perf_counter()
    tokens = await asyncio.gather(*(one(request) for request in requests))
    seconds = time.perf_counter() - start
    return seconds, sum(prompt for prompt, _ in tokens), sum(reply for _, reply in tokens)

"""Measure the prefill and decode rates of a bare engine, as `gistmill plan --rates` takes them."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.figures import Figure, figure_without_bar
from benchmarks.peers.bare import on_engine
from jobs.config.run_config import RunConfig
from pipeline.asking.readers import num_slots
from pipeline.core.engine import Engine, Request

_PROMPTS_PER_SEQUENCE, _MOST_PROMPTS = 4, 512
_PROMPT_WORDS, _REPLY_TOKENS = 1000, 256


def rates(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Uncached prompt tokens per second with replies of one token, and reply tokens per second with
    prompts of a few words; with as many concurrent requests as a run has at the engine."""
    engine = config.engine
    num = min(_MOST_PROMPTS, _PROMPTS_PER_SEQUENCE * engine.sequences)
    measurements: list[tuple[float, float]] = on_engine(
        engine, measured_rates, num, num_slots(engine), pairs
    )
    prefill, decode = zip(*measurements, strict=True)
    return [
        figure_without_bar("rates", "prompt tokens a second (PREFILL)", prefill),
        figure_without_bar("rates", "reply tokens a second (DECODE)", decode),
    ]


async def measured_rates(
    engine: Engine, num: int, at_once: int, pairs: int
) -> list[tuple[float, float]]:
    """Both rates, measured `pairs` times with `num` requests each; no prompts share a prefix."""
    draw = Random(0)
    found = []
    for _ in range(pairs):
        long = [_request(draw, _PROMPT_WORDS, 1) for _ in range(num)]
        short = [_request(draw, 8, _REPLY_TOKENS) for _ in range(num)]
        seconds, prompt, _ = await _answered(engine, long, at_once)
        prefill = prompt / seconds
        seconds, _, reply = await _answered(engine, short, at_once)
        found.append((prefill, reply / seconds))
    return found


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

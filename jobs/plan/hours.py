"""From tokens to hours: each engine's tokens by its rates, shared among as many as there are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jobs.plan.costs import MEASURES
from jobs.plan.former import Former
from jobs.plan.rates import RateOptions, rates_of
from jobs.plan.scale import Numbers
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError


@dataclass
class Share:
    """What the engine of a phase has to do: low, likely and high of every measure."""

    phase: str
    engine: EngineSettings
    numbers: Numbers = field(default_factory=lambda: np.zeros((3, len(MEASURES))))


def hours(
    shares: Sequence[Share], options: RateOptions, like: Former | None
) -> list[dict[str, Any]]:
    """A row per phase: its engines, their rates and hours (null where no rate is known).

    Raises UsageError where there are fewer GPUs than one engine needs.
    """
    return [_phase(share, options, like) for share in shares]


def _phase(share: Share, options: RateOptions, like: Former | None) -> dict[str, Any]:
    calls, prompt, uncached, reply = (share.numbers[:, i] for i in range(len(MEASURES)))
    mean_prompt = float(prompt[1] / calls[1]) if calls[1] else 0.0
    rates = rates_of(share.engine, options, like, mean_prompt)
    engines = num_engines(share.engine, options.gpus)
    found: dict[str, Any] = {
        "phase": share.phase,
        "engine": share.engine.title,
        "engines": engines,
        "gpus": engines * share.engine.gpus,
        "prefill_tokens_per_second": rates.prefill if rates else None,
        "decode_tokens_per_second": rates.decode if rates else None,
        "rates": rates.how
        if rates
        else "not known: add --like RUN, --rates PREFILL,DECODE"
        + (" or --gpu KIND and --params BILLIONS" if hasattr(share.engine, "model") else ""),
        "hours": None,
        "gpu_hours": None,
    }
    if rates:
        seconds = [rates.seconds(float(u), float(r)) for u, r in zip(uncached, reply, strict=True)]
        found["hours"] = [s / engines / 3600 for s in seconds]
        found["gpu_hours"] = [s * share.engine.gpus / 3600 for s in seconds]
    return found


def num_engines(settings: EngineSettings, gpus: int) -> int:
    """How many work at once. Those without GPUs: as many as the config asks for.

    Raises UsageError where one engine needs more GPUs than there are.
    """
    if not settings.gpus:
        return settings.max_workers or settings.min_workers
    num = int(gpus / settings.gpus)
    if not num:
        raise UsageError(f"--gpus {gpus}: an engine needs {settings.gpus:g}; raise it")
    return min(num, settings.max_workers or num)

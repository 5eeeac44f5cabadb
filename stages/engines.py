"""The engines there are, and what names each of them in a step."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from pipeline.ask import Reader
from pipeline.engine import Engine
from pipeline.errors import UsageError
from pipeline.prompts import Family
from pipeline.scripted_engine import ScriptedEngine, script_sha
from pipeline.settings import Settings, sha
from stages.extractive import ExtractiveEngine

# Requests admitted per sequence of the engine: a few wait at its door, so that it never does.
_SLOTS_PER_SEQUENCE = 1.25


class EngineSettings(Settings):
    """The `engine` section, and a `rater` section that names an engine of its own."""

    name: Literal["extractive", "scripted"]
    script: str | None
    context_tokens: PositiveInt
    temperature: NonNegativeFloat
    seed: int
    sequences: PositiveInt
    deadline_seconds: PositiveFloat

    def identity(self) -> dict[str, Any]:
        """What changes replies, and so is hashed; limits and deadlines are not."""
        sampling: dict[str, Any] = {"temperature": self.temperature}
        if self.temperature > 0:
            sampling["seed"] = self.seed
        kind = ENGINES[self.name]
        own = {"engine": self.name, "context_tokens": self.context_tokens}
        return {**own, **kind.identity(self), **sampling}


@dataclass(frozen=True)
class Kind:
    """One kind of engine: how it is made, and what is known of it before it is."""

    make: Callable[[EngineSettings], Engine]
    identity: Callable[[EngineSettings], Mapping[str, Any]]
    is_model: bool
    is_deterministic: bool


def _script(settings: EngineSettings) -> str:
    if settings.script is None:
        raise UsageError("engine.script is not set; name a YAML file of replies")
    return settings.script


ENGINES: dict[str, Kind] = {
    "extractive": Kind(
        make=lambda settings: ExtractiveEngine(settings.context_tokens),
        identity=lambda settings: {"version": ExtractiveEngine.version},
        is_model=False,
        is_deterministic=True,
    ),
    "scripted": Kind(
        make=lambda settings: ScriptedEngine(_script(settings), settings.context_tokens),
        identity=lambda settings: {"script": script_sha(_script(settings))},
        is_model=True,
        is_deterministic=False,
    ),
}


def make_reader(settings: EngineSettings, family: Path) -> Reader:
    """The engine, started, with what shapes its replies."""
    return Reader(
        engine=ENGINES[settings.name].make(settings),
        identity=sha(settings.identity(), 16),
        family=Family(family),
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature > 0 else 0,
        deadline_seconds=settings.deadline_seconds,
        slots=asyncio.Semaphore(math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)),
    )

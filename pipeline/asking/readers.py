"""Readers: the engine of each settings section, started and combined with a prompt family."""

import math
from typing import Annotated, Literal

from pydantic import Field

from pipeline.asking.ask import Reader
from pipeline.asking.slots import Slots
from pipeline.core.engine import Engine, EngineSettings
from pipeline.core.settings import sha
from pipeline.engines.extractive import ExtractiveSettings
from pipeline.engines.openai import OpenAIEngine, OpenAISettings
from pipeline.engines.scripted import ScriptedSettings
from pipeline.engines.simulated import SimulatedSettings
from pipeline.engines.vllm import VllmSettings
from pipeline.families.family import Family

AnyEngine = Annotated[
    ExtractiveSettings | ScriptedSettings | SimulatedSettings | OpenAISettings | VllmSettings,
    Field(discriminator="name"),
]
ReplyFormat = Literal["free", "constrained"]

# Requests admitted per sequence of the engine; oversubscription keeps its batch full.
_SLOTS_PER_SEQUENCE = 1.25


def num_slots(settings: EngineSettings) -> int:
    """The most requests in flight at one engine."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


def is_constrained(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """True if replies are constrained to legal ones (structured output)."""
    return reply_format == "constrained" and settings.takes_constraints


async def start_reader(
    settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """Start an engine and return its Reader. Raises StartError if it cannot start."""
    return reader_of(await settings.start(), settings, family, reply_format)


def reader_of(
    engine: Engine, settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """The Reader of a started `engine` with these settings."""
    return Reader(
        engine=engine,
        identity=sha(settings.identity(), 16),
        is_model=settings.is_model,
        family=family,
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature > 0 else 0,
        deadline_seconds=None if settings.keeps_deadline else settings.deadline_seconds,
        slots=Slots(num_slots(settings)),
        is_constrained=is_constrained(settings, reply_format),
        keeps_journal=settings.keeps_journal,
        keeps_prompts=settings.keep_prompts,
        waiting_for=engine.waiting_for if isinstance(engine, OpenAIEngine) else str,
    )

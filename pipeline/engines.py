"""The engines there are, and a reader made of one and a prompt family."""

import math
from typing import Annotated, Literal

from pydantic import Field

from pipeline.ask import Reader
from pipeline.engine import Engine, EngineSettings
from pipeline.extractive_engine import ExtractiveSettings
from pipeline.family import Family
from pipeline.openai_engine import OpenAISettings
from pipeline.scripted_engine import ScriptedSettings
from pipeline.settings import sha
from pipeline.simulated_engine import SimulatedSettings
from pipeline.slots import Slots
from pipeline.vllm_engine import VllmSettings

AnyEngine = Annotated[
    ExtractiveSettings | ScriptedSettings | SimulatedSettings | OpenAISettings | VllmSettings,
    Field(discriminator="name"),
]
ReplyFormat = Literal["free", "constrained"]

# Requests admitted per sequence of the engine: the oversubscription keeps its batch full.
_SLOTS_PER_SEQUENCE = 1.25


def num_slots(settings: EngineSettings) -> int:
    """The requests that one engine is given at once."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


def is_constrained(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """Whether the engine can only reply with what is legal."""
    return reply_format == "constrained" and settings.takes_constraints


async def start_reader(
    settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """The engine, started, with what shapes its replies. Raises StartError where it cannot."""
    return reader_of(await settings.start(), settings, family, reply_format)


def reader_of(
    engine: Engine, settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """`engine` with what shapes its replies by `settings`."""
    return Reader(
        engine=engine,
        identity=sha(settings.identity(), 16),
        is_model=settings.is_model,
        family=family,
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature > 0 else 0,
        deadline_seconds=settings.deadline_seconds,
        slots=Slots(num_slots(settings)),
        is_constrained=is_constrained(settings, reply_format),
    )

"""The engines there are, and a reader made of one and a prompt family."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from pipeline.ask import Reader
from pipeline.engine import Engine, EngineSettings
from pipeline.openai_engine import OpenAISettings
from pipeline.prompts import Family
from pipeline.scripted_engine import ScriptedSettings
from pipeline.settings import sha
from pipeline.simulated_engine import SimulatedSettings
from pipeline.slots import Slots
from pipeline.vllm_engine import VllmSettings
from stages.extractive import ExtractiveSettings
from stages.family import load_family

AnyEngine = Annotated[
    ExtractiveSettings | ScriptedSettings | SimulatedSettings | OpenAISettings | VllmSettings,
    Field(discriminator="name"),
]
ReplyFormat = Literal["free", "constrained"]

# Requests admitted per sequence of the engine: a few wait at its door, so that it never does.
_SLOTS_PER_SEQUENCE = 1.25


def num_slots(settings: EngineSettings) -> int:
    """The requests that one engine is given at once."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


def identity(settings: EngineSettings, family: Path, reply_format: ReplyFormat) -> dict[str, Any]:
    """What names an engine in a step: all that changes its replies, as JSON."""
    forms = _forms(settings, family, reply_format)
    return {**settings.identity(), **({"forms": forms} if forms else {})}


async def start_reader(settings: EngineSettings, family: Path, reply_format: ReplyFormat) -> Reader:
    """The engine, started, with what shapes its replies. Raises StartError where it cannot."""
    return reader_of(await settings.start(), settings, family, reply_format)


def reader_of(
    engine: Engine, settings: EngineSettings, family: Path, reply_format: ReplyFormat
) -> Reader:
    """`engine` with what shapes its replies by `settings`."""
    return Reader(
        engine=engine,
        identity=sha(identity(settings, family, reply_format), 16),
        is_model=settings.is_model,
        family=Family(family),
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature > 0 else 0,
        deadline_seconds=settings.deadline_seconds,
        slots=Slots(num_slots(settings)),
        forms=_forms(settings, family, reply_format),
    )


def _forms(
    settings: EngineSettings, family: Path, reply_format: ReplyFormat
) -> Mapping[str, str] | None:
    """What constrained replies look like; null where they are free."""
    if reply_format == "free" or not settings.takes_constraints:
        return None
    return load_family(family).forms.model_dump()

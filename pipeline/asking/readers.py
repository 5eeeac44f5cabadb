"""Readers: the engine of each settings section, started and combined with a prompt family."""

import math
from typing import Literal

from pipeline.asking.reader import Reader
from pipeline.asking.reply_health import ReplyWatch
from pipeline.asking.slots import Slots
from pipeline.core.engine import Engine, EngineSettings
from pipeline.core.errors import CommandError, StartError, contained
from pipeline.core.registry import is_ours
from pipeline.core.settings import sha
from pipeline.engines import extractive, scripted, vllm  # noqa: F401  # found by name
from pipeline.engines.openai import OpenAIEngine
from pipeline.families.family import Family

ReplyFormat = Literal["auto", "free", "constrained"]
"""`auto`: constrained where the engine can enforce it."""

# Requests admitted per sequence of the engine; oversubscription keeps its batch full.
_SLOTS_PER_SEQUENCE = 1.25
_NEEDED = ("name", "context_tokens", "generate", "count_tokens")  # of an engine


def num_slots(settings: EngineSettings) -> int:
    """The most requests in flight at one engine."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


def is_constrained(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """True if replies are constrained to legal ones (structured output)."""
    return reply_format != "free" and settings.takes_constraints


def may_constrain(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """True if replies are free and reply_format=constrained would change that."""
    return reply_format == "free" and settings.takes_constraints


async def start_reader(
    settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """Start an engine and return its Reader. Raises StartError if it cannot start."""
    return reader_of(await started(settings), settings, family, reply_format)


async def started(settings: EngineSettings) -> Engine:
    """The engine. Raises StartError, of a plugin's engine for all that its `start` raises, and for
    what is no engine."""
    if is_ours(type(settings)):
        return await settings.start()
    place = f"engine={settings.name}: {type(settings).__name__}.start"
    with contained(CommandError) as raised:
        engine = await settings.start()
        if missing := [name for name in _NEEDED if not hasattr(engine, name)]:
            raise StartError(f"{place} returned {type(engine).__name__}, without {missing[0]}")
        return engine
    raise StartError(f"{place}: {raised.line()}; fix it")


def reader_of(
    engine: Engine, settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """The Reader of a started `engine` with these settings."""
    server = engine if isinstance(engine, OpenAIEngine) else None
    return Reader(
        engine=engine,
        identity=sha(settings.identity(), 16),
        is_model=settings.is_model,
        family=family,
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature != 0 else 0,
        deadline_seconds=None if settings.keeps_deadline else settings.deadline_seconds,
        slots=Slots(num_slots(settings)),
        is_constrained=is_constrained(settings, reply_format),
        watch=ReplyWatch(
            may_constrain(settings, reply_format), server.findings if server else None
        ),
        keeps_journal=settings.keeps_journal,
        keeps_prompts=settings.keep_prompts,
        waiting_for=server.waiting_for if server else str,
    )

"""The simulated engine, a plugin of the benchmarks, and requests to it. It is imported where it is
used: a process that loads the plugin by its folder has its classes already."""

import asyncio
from typing import TYPE_CHECKING, Any

from pipeline.core.compose import compose
from pipeline.core.engine import Reply, Request
from tests.support import reading
from tests.support.command import ROOT

if TYPE_CHECKING:
    from benchmarks.simulated.simulated_engine import SimulatedEngine, SimulatedSettings

PLUGIN = f"plugins={ROOT / 'benchmarks' / 'simulated'}"
SIMULATED = (PLUGIN, "engine=simulated")
_CONF = ROOT / "benchmarks" / "simulated" / "conf"


def settings(**changed: Any) -> "SimulatedSettings":
    from benchmarks.simulated.simulated_engine import SimulatedSettings

    composed = compose(["engine=simulated"], [_CONF])["engine"]
    return SimulatedSettings.model_validate({**composed, **changed})


def request(content: str, **changed: Any) -> Request:
    return reading.request(content, **{"max_reply_tokens": 100, **changed})


def in_order(engine: "SimulatedEngine", *requests: Request) -> list[Reply]:
    async def ask() -> list[Reply]:
        return [await engine.generate(request) for request in requests]

    return asyncio.run(ask())

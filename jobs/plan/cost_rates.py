"""From tokens to seconds and money, by rates that are given or those of an earlier run with the
same engine, which also gives the lengths of replies by prompt."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.config.prices import numbers, price_of
from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun, resolve
from jobs.run.compatibility import stored_config
from pipeline.core.engine import EngineSettings, Price
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.engines.simulated import SimulatedSettings
from pipeline.files.place import AnyPath
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import query

REPLY_COSTS = 10.0  # the cost of a reply token, in prompt tokens
_REPLIES = """
select prompt, s.engine, avg(reply_tokens) as tokens from calls join steps s using (step_id)
where not is_shared and problem is null group by all"""


@dataclass(frozen=True)
class Reference:
    """A run that has ended. Engines are keyed by the hash of their identity: `reply_tokens` are
    means by engine and prompt, `speeds` by engine the tokens of prompts and replies that one engine
    processed in a second, a reply's token counted as `REPLY_COSTS` of a prompt's."""

    run: str
    reply_tokens: Mapping[str, Mapping[str, float]]
    speeds: Mapping[str, float]


def reference(warehouse: AnyPath, run: str, config: RunConfig) -> Reference:
    """The reply lengths and speeds of the run. Raises UsageError if there is no such run, or it was
    read by another engine."""
    name = run_name(warehouse, run)
    folder = RunFolder(warehouse, name)
    before = stored_config(folder)
    if before.engine.identity() != config.engine.identity():
        raise UsageError(
            f"--like {run}: {before.engine.title} read it, now {config.engine.title} shall; name a "
            "run with the same engine and settings"
        )
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with connect(warehouse, name) as connection:
        for row in query(connection, _REPLIES):
            found[sha(json.loads(row["engine"]))][row["prompt"]] = row["tokens"]
    return Reference(name, found, _speeds(folder, resolve(before)))


def _speeds(folder: RunFolder, before: ResolvedRun) -> dict[str, float]:
    """The speeds of engines: costs over wall-clock seconds of the phases, summed over workers."""
    engines = {phase.name: phase.engine for phase in before.phases}
    costs: dict[str, float] = defaultdict(float)
    seconds: dict[str, float] = defaultdict(float)
    for took in [one for launch in folder.readable_launches() for one in launch.get("phases", ())]:
        if settings := engines.get(took["phase"].split(":")[0]):
            engine = sha(settings.identity())
            uncached = took["prompt_tokens"] - took["cached_tokens"]
            costs[engine] += uncached + REPLY_COSTS * took["reply_tokens"]
            seconds[engine] += took["seconds"] * took["workers"]
    return {engine: costs[engine] / seconds[engine] for engine in costs if seconds[engine]}


@dataclass(frozen=True)
class Options:
    """The command's options. `rates`: PREFILL,DECODE in tokens a second of one engine; `price`: see
    jobs/config/prices.py."""

    like: str | None = None
    rates: str | None = None
    gpus: int = 1
    price: str | None = None

    def check(self, settings: EngineSettings) -> None:
        """Raise UsageError for an option that cannot be used, before any work."""
        num_engines(settings, self.gpus)
        if self.rates is not None and min(numbers("rates", self.rates, "PREFILL,DECODE")) <= 0:
            raise UsageError(f"--rates {self.rates}: both must be above 0")
        self.price_for(settings)

    def price_for(self, settings: EngineSettings) -> Price:
        """The price that is given, else the engine's own."""
        return settings.price if self.price is None else price_of(self.price)


@dataclass(frozen=True)
class Rates:
    """Tokens a second of one engine: uncached prompt tokens, and those of all replies together."""

    prefill: float
    decode: float
    how: str


def rates_of(settings: EngineSettings, options: Options, like: Reference | None) -> Rates | None:
    """The rates of one engine; None if they are not known."""
    if options.rates is not None:
        prefill, decode = numbers("rates", options.rates, "PREFILL,DECODE")
        return Rates(prefill, decode, f"--rates {options.rates}")
    if like and (speed := like.speeds.get(sha(settings.identity()))):
        how = f"by the clock of run {like.run}, a reply's token as {REPLY_COSTS:.0f} of a prompt's"
        return Rates(speed, speed / REPLY_COSTS, how)
    if isinstance(settings, SimulatedSettings):
        decode = settings.decode_tokens_per_second * settings.sequences
        return Rates(settings.prefill_tokens_per_second, decode, "the simulated engine's settings")
    return None


def num_engines(settings: EngineSettings, gpus: int) -> int:
    """The number of engines that run at once; of engines without GPUs, as many as the config asks
    for.

    Raises UsageError if one engine needs more GPUs than there are.
    """
    if not settings.gpus_elsewhere:
        return settings.max_workers or settings.min_workers
    num = int(gpus / settings.gpus_elsewhere)
    if not num:
        raise UsageError(f"--gpus {gpus}: an engine needs {settings.gpus_elsewhere:g}; raise it")
    return min(num, settings.max_workers or num)

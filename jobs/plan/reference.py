"""Reply lengths by prompt, and speed, of an earlier run with the same engine."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.config.run_config import RunConfig
from jobs.graph.resolved_run import ResolvedRun, resolve
from jobs.run.compatibility import stored_config
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
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

    def reply_tokens_of(self, settings: EngineSettings) -> Mapping[str, float]:
        return self.reply_tokens.get(sha(settings.identity()), {})

    def speed_of(self, settings: EngineSettings) -> float | None:
        return self.speeds.get(sha(settings.identity()))


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
    engines = {phase.name: sha(phase.engine.identity())
               for phase in before.phases if phase.engine}  # fmt: skip
    costs: dict[str, float] = defaultdict(float)
    seconds: dict[str, float] = defaultdict(float)
    for took in (
        phase for launch in folder.readable_launches() for phase in launch.get("phases", ())
    ):
        engine = engines.get(took["phase"].split(":")[0])
        if engine is not None:
            uncached = took["prompt_tokens"] - took["cached_tokens"]
            costs[engine] += uncached + REPLY_COSTS * took["reply_tokens"]
            seconds[engine] += took["seconds"] * took["workers"]
    return {engine: costs[engine] / seconds[engine] for engine in costs if seconds[engine]}

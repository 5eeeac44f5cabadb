"""What a former run did with its engines: how long replies were, prompt by prompt, how fast it was;
and the calls of its documents, which are scaled after a real pilot."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from jobs.compatibility import stored_config
from jobs.config import RunConfig
from jobs.phases import phases
from jobs.plan.counting import cost_of
from jobs.plan.scaling import Point, Size
from jobs.preparation import Prepared
from jobs.step_graph import run_steps
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError
from pipeline.place import AnyPath
from pipeline.settings import sha
from pipeline.store import connect
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name

_LEAST_CALLS = 10  # of a prompt, before they tell what is usual
_REPLIES = f"""
select prompt, s.engine, avg(reply_tokens) as tokens from calls join steps s using (step_id)
where not is_shared and problem is null group by all having count(*) >= {_LEAST_CALLS}"""


@dataclass(frozen=True)
class Speed:
    """What engines did in a time; `seconds` are those of all of them together."""

    uncached_tokens: float = 0.0
    reply_tokens: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Former:
    """A run that has ended. `usual` mean reply tokens by engine and prompt, `speeds` by engine; an
    engine goes by the hash of its identity."""

    run: str
    usual: Mapping[str, Mapping[str, float]]
    speeds: Mapping[str, Speed]

    def usual_of(self, settings: EngineSettings) -> Mapping[str, float]:
        return self.usual.get(sha(settings.identity()), {})

    def speed_of(self, settings: EngineSettings) -> Speed:
        return self.speeds.get(sha(settings.identity()), Speed())


def former(warehouse: AnyPath, run: str, config: RunConfig) -> Former:
    """Raises UsageError where there is no such run, or another engine read it."""
    name = run_name(warehouse, run)
    folder = RunFolder(warehouse, name)
    before = stored_config(folder)
    if before.engine.identity() != config.engine.identity():
        raise UsageError(
            f"--like {run}: {before.engine.title} read it, now {config.engine.title} shall; name a "
            "run with the same engine and settings"
        )
    usual: dict[str, dict[str, float]] = defaultdict(dict)
    with connect(warehouse, name) as connection:
        for row in query(connection, _REPLIES):
            usual[sha(json.loads(row["engine"]))][row["prompt"]] = row["tokens"]
    return Former(name, usual, _speeds(folder, before))


def _speeds(folder: RunFolder, before: RunConfig) -> dict[str, Speed]:
    """Of its phases by the clock, each worker's seconds added."""
    engines = {phase.name: sha(phase.engine.identity())
               for phase in phases(run_steps(before)) if phase.engine}  # fmt: skip
    found: dict[str, Speed] = {}
    for took in (phase for launch in folder.launches() for phase in launch.get("phases", ())):
        engine = engines.get(took["phase"].split(":")[0])
        if engine is not None:
            own = found.get(engine, Speed())
            found[engine] = Speed(
                own.uncached_tokens + took["prompt_tokens"] - took["cached_tokens"],
                own.reply_tokens + took["reply_tokens"],
                own.seconds + took["seconds"] * took["workers"],
            )
    return found


def points_of(prepared: Prepared, documents: Collection[str]) -> dict[str, list[Point]]:
    """By step the calls and tokens of each of these documents, where it is done."""
    steps = {step.id: step for step in prepared.steps if step.prompts}
    found: dict[str, list[Point]] = defaultdict(list)
    for key in prepared.keys:
        if key.document_id not in documents or key.is_bad:
            continue
        for step in steps.values():
            units = [u for u in prepared.units[key.document_id] if u.step_id == step.id]
            if not units or not all(unit.is_done for unit in units):
                continue
            calls = [c for u in units for c in prepared.shards.recorded(step.id, u.unit) or ()]
            asked = {question_id for unit in units for question_id in unit.inputs}
            mine = [c for c in calls if not c.is_shared and (not asked or c.question_id in asked)]
            times = len(asked) if step.per_question else max(1, key.num_words)
            found[step.id].append(Point(Size(frozenset(), key.num_words, times), cost_of(mine)))
    return found

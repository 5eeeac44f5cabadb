"""All that a run does to its warehouse, in this process and without Ray, from a seed.

It loads the corpus, plans, executes every unit (of some seeds by two workers that compete), makes
the second attempt of one unit and what follows from it.
"""

import asyncio
import os
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import read_run, run_manifest
from jobs.run.launch import provenance
from pipeline.asking.ask import Reader, start_reader
from pipeline.core.calls import Call
from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Message
from pipeline.store import Shards
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.upkeep import collect, compact
from pipeline.work.units import Unit
from pipeline.worker.crashes import Placement
from pipeline.worker.worker import Worker
from tests.chaos.server import reply, sha
from tests.support.runs.written_plan import units_of
from tests.support.texts.small_corpus import UNIFORM, document, question, write

_METHODS = ("gist_only", "bm25(top_k=1)", "readagent_p(max_pages=1)")
_SEQUENCES = 2


@dataclass
class CountedEngine:
    """Replies at once, and appends a line per request to a file, which is no crash point."""

    log: int  # file descriptor
    name: str = "counted"
    context_tokens: int = 32_000

    async def generate(self, request: Request) -> Reply:
        line = f"{sha(request.messages, request.seed, request.attempt)}\n".encode()
        self._append(self.log, line)
        await asyncio.sleep(0)
        return Reply(text=reply(request.messages), finish_reason="stop", prompt_tokens=7)

    _append = staticmethod(os.write)  # as it was before anything was wrapped

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)


class Night:
    """The run of one seed. `folder` is for its corpus, not for its warehouses."""

    def __init__(self, folder: Path, seed: int) -> None:
        draw = random.Random(seed)
        numbers = range(draw.randint(1, 2))
        questions = [question(10 * n + i, of=n) for n in numbers for i in range(draw.randint(1, 3))]
        write(folder / "corpus", [document(n) for n in numbers], questions)
        script = folder / "script.yaml"
        script.write_text(yaml.safe_dump({"replies": []}))  # names the engine, which is replaced
        self.num_workers = 1 + seed % 2
        self._retried = draw.random()
        self._config = read_run(
            ["corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "run=night",
             f"methods={draw.choice(_METHODS)}", "engine=scripted", f"engine.script={script}",
             f"engine.sequences={_SEQUENCES}", f"questions_per_unit={draw.choice((1, 2, 100))}",
             "warehouse=nowhere"]
        )  # fmt: skip
        # All that does not touch the warehouse is made once, for every process forked from here.
        self._stored, self._provenance = run_manifest(self._config), provenance(None)
        self._steps = self._config.steps
        family = self._config.family
        reader = asyncio.run(start_reader(self._config.config.engine, family, False))
        log = os.open(folder / "asked", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._reader = replace(reader, engine=CountedEngine(log))

    def complete(self, warehouse: str) -> None:
        """What a user's commands do; again where they ended early."""
        shards = Shards(warehouse)
        self._launch(shards)
        _compact(warehouse)
        self._second_attempt(shards)
        self._launch(shards)
        _compact(warehouse)

    def _launch(self, shards: Shards) -> None:
        prepared = prepare(self._config, shards.warehouse, lambda line: None)
        folder = RunFolder(shards.warehouse, "night")
        folder.start(self._stored, self._provenance, has_work=True)
        folder.plan(prepared.run.steps, prepared.plan.file)
        asyncio.run(self._work(folder, units_of(prepared)))
        folder.all_gone()
        shards.committed(self._steps)  # refuses damaged shards

    async def _work(self, folder: RunFolder, units: Mapping[str, Sequence[Unit]]) -> None:
        async def start() -> Reader:
            return self._reader

        launch = uuid.uuid4().hex
        workers = [
            Worker(folder.path, launch, Placement(f"worker{n}"), self._steps, start, 60.0)
            for n in range(self.num_workers)
        ]
        await asyncio.gather(
            *(worker.work(d, planned, 0) for worker in workers for d, planned in units.items())
        )

    def _second_attempt(self, shards: Shards) -> None:
        """A unit of the first stage that asks, as a retry makes it: its calls, then its rows."""
        step = next(step for step in self._steps if step.prompts)
        prepared = prepare(self._config, shards.warehouse, lambda line: None)
        planned = [unit for units in units_of(prepared).values() for unit in units]
        units = [unit for unit in planned if unit.step_id == step.id]
        unit = units[int(self._retried * len(units))]
        for record in (Call, step.writes):
            rows = shards.load(record, step.id, unit.unit, unit.attempt)
            shards.commit(record, step, replace(unit, attempt=2), rows)


def _compact(warehouse: str) -> None:
    """What `gistmill gc older_than=0` does."""
    compact(warehouse, least=2)
    collect(warehouse, 0.0)

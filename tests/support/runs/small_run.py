"""A small corpus, a scripted engine and a worker in this process; no Ray."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from upath import UPath

from jobs.config.run_config import RunConfig
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import ResolvedRun, read_run, run_manifest
from jobs.run.launch import provenance
from pipeline.asking.ask import Capacity, Reader, start_reader
from pipeline.store import Shards
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import raise_layout
from pipeline.work.units import Step, Unit
from pipeline.worker.crashes import Placement
from pipeline.worker.progress import Summary
from pipeline.worker.worker import Worker
from tests.support.runs.written_plan import units_of
from tests.support.texts.small_corpus import UNIFORM, document, question, write

RULES: list[dict[str, Any]] = [
    {"prompt": "look_up_p", "reply": "I want to look up Page [1] to be sure"},
    {"prompt": "rate_strict", "reply": "NO"},
    {"prompt": "rate_permissive", "reply": "Yes, partially"},
    {"reply": "as it was"},
]


class RunHere:
    """The run of these words by one worker in this process, which asks `reader`."""

    reader: Reader

    def __init__(self, *words: str) -> None:
        self.resolved = read_run([*words])
        self.config: RunConfig = self.resolved.config
        self.shards = Shards(self.config.warehouse)
        self.steps = self.resolved.steps

    def prepared(self) -> Prepared:
        """The corpus as it is now, loaded; what is done and to do."""
        return prepare(self.resolved, self.config.warehouse, lambda line: None)

    def units(self) -> Mapping[str, Sequence[Unit]]:
        """What is done and to do, by document."""
        return units_of(self.prepared())

    def worker(self, reader: Reader | None = None) -> Worker:
        async def start() -> Reader:
            return reader or replace(self.reader, slots=Capacity(100))  # each worker has its own

        return Worker(
            self.shards.warehouse / "runs" / "night", "launch", Placement("worker"),
            self.steps, start, 60.0,
        )  # fmt: skip

    def work(self, *document_ids: str) -> list[Summary]:
        """One worker, all documents at once."""
        units = self.units()
        asked = document_ids or tuple(units)

        async def all_of_them() -> list[Summary]:
            worker = self.worker()
            return list(await asyncio.gather(*(worker.work(d, units[d], 120) for d in asked)))

        return asyncio.run(all_of_them())


def write_run(resolved: ResolvedRun, prepared: Prepared) -> None:
    """A run's own files, as a command leaves them."""
    folder = RunFolder(resolved.config.warehouse, resolved.name)
    raise_layout(folder.warehouse)
    folder.start(run_manifest(resolved), provenance(prepared.corpus_sha), True)
    folder.plan(prepared.run.steps, prepared.plan.file)


class SmallRun(RunHere):
    """Two documents of three pages; d1 has questions q1 and q2, d2 has q3; one method."""

    def __init__(self, folder: Path, rules: Sequence[Mapping[str, Any]] = RULES) -> None:
        self.folder = folder
        write(folder / "corpus", [document(1), document(2)],
              [question(1, of=1), question(2, of=1), question(3, of=2)])  # fmt: skip
        script = folder / "script.yaml"
        script.write_text(yaml.safe_dump({"replies": list(rules)}))
        super().__init__(
            "corpus=tables", f"corpus.path={folder / 'corpus'}", "methods=readagent_p",
            "engine=scripted", f"engine.script={script}", *UNIFORM,
            f"warehouse={folder / 'warehouse'}",
        )  # fmt: skip
        self.reader = asyncio.run(start_reader(self.config.engine, self.resolved.family, False))

    def step(self, table: str) -> Step:
        (found,) = [step for step in self.steps if step.table == table]
        return found

    def rows(self, table: str, document_id: str = "d1") -> tuple[Any, ...]:
        """The committed rows of a document."""
        step = self.step(table)
        units = [u for u in self.units()[document_id] if u.step_id == step.id]
        assert all(unit.is_done for unit in units), f"{table} of {document_id} is not done"
        found = [self.shards.load(step.writes, step.id, unit.unit) for unit in units]
        return tuple(row for rows in found for row in rows)

    def shard(self, table: str, of: str = "") -> UPath:
        """The one shard of d1 in a table; of its calls where `of` names another table."""
        step = self.step(of or table)
        (unit,) = [u for u in self.units()["d1"] if u.step_id == step.id]
        return self.shards.path(table, step.id, unit.unit)

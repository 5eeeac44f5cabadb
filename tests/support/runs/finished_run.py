"""A small finished run named `night`, made without Ray, for tests of what reads warehouses."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.graph.resolved_run import resolve, run_manifest
from jobs.run.launch import provenance
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import raise_layout
from tests.support.runs.small_run import RULES, SmallRun
from tests.support.texts.small_corpus import UNIFORM


class FinishedRun:
    """The run of small_run.py with its files in runs/night, and copies of its warehouse."""

    def __init__(self, folder: Path, rules: Sequence[Mapping[str, Any]] = RULES) -> None:
        self.small = SmallRun(folder, rules)
        self.small.work()
        self.warehouse = folder / "warehouse"
        prepared = self.small.prepared()
        raise_layout(RunFolder(self.warehouse, "night").warehouse)
        night = RunFolder(self.warehouse, "night")
        named = resolve(self.small.config.model_copy(update={"run": "night"}))
        night.start(run_manifest(named), provenance(prepared.corpus_sha), True)
        night.plan(prepared.run.steps, prepared.plan.file)

    def copied(self, folder: Path) -> Path:
        """A copy of the warehouse, in `folder`."""
        return Path(shutil.copytree(self.warehouse, folder / "warehouse"))

    def words(self, warehouse: Path | str) -> list[str]:
        """The command that made the run."""
        folder = self.small.folder
        return ["run", "run=night", "corpus=tables", f"corpus.path={folder / 'corpus'}",
                "methods=readagent_p", "engine=scripted", f"engine.script={folder / 'script.yaml'}",
                *UNIFORM, f"warehouse={warehouse}"]  # fmt: skip

    def shard(self, table: str) -> Path:
        """The first document's shard of a table; of `calls` those of its gists."""
        of = "gists" if table == "calls" else ""
        return Path(str(self.small.shard(table, of=of)))

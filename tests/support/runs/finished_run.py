"""A small finished run named `night`, made without Ray, for tests of what reads warehouses."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.graph.resolved_run import resolve
from tests.support.runs.small_run import RULES, SmallRun, write_run
from tests.support.texts.small_corpus import UNIFORM


class FinishedRun:
    """The run of small_run.py with its files in runs/night, and copies of its warehouse."""

    def __init__(self, folder: Path, rules: Sequence[Mapping[str, Any]] = RULES) -> None:
        self.small = SmallRun(folder, rules)
        self.small.work()
        self.warehouse = folder / "warehouse"
        named = resolve(self.small.config.model_copy(update={"run": "night"}))
        write_run(named, self.small.prepared())

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
        return Path(str(self.small.shard(table, of="gists" if table == "calls" else "")))

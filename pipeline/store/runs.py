"""The files of one run: its config, what made it, and the inputs it planned.

They are written before work; progress is only ever the shards.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.steps import Step, Unit
from pipeline.store.shards import write_json
from pipeline.store.views import UNITS


class RunFolder:
    """<warehouse>/runs/<name>/ and the steps/ it shares with every other run."""

    def __init__(self, warehouse: Path, name: str) -> None:
        self.warehouse = warehouse
        self.path = warehouse / "runs" / name

    def config(self) -> dict[str, Any] | None:
        """The config the run was last started with, if it stands."""
        file = self.path / "config.json"
        return json.loads(file.read_text()) if file.is_file() else None

    def start(self, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        write_json(self.path / "config.json", config)
        write_json(self.path / "provenance.json", provenance)

    def provenance(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.path / "provenance.json").read_text())
        return content

    def plan(self, steps: Iterable[Step], units: Iterable[Unit]) -> None:
        """Write what made each step, once, and every input the run plans."""
        for step in steps:
            file = self.warehouse / "steps" / f"{step.id}.json"
            if not file.is_file():
                write_json(file, step.description())
        rows = [
            {"step_id": u.step_id, "unit": u.unit, "document_id": u.document_id, "question_id": q}
            for u in units
            for q in (u.inputs or [None])
        ]
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.path / f".units.{uuid.uuid4().hex}.part"
        pq.write_table(pa.Table.from_pylist(rows, schema=UNITS), part)
        part.replace(self.path / "units.parquet")

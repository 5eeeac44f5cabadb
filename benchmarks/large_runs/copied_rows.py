"""Write the warehouse of a large run that was not executed: the rows that it makes of one document,
under the ids of all that it plans."""

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from upath import UPath

from jobs.config.run_config import RunConfig
from jobs.graph.manifest import run_manifest
from jobs.graph.preparation import prepare
from jobs.graph.read_run import read_run
from jobs.graph.resolved_run import resolve
from jobs.plan.pilot import DryRunShards
from jobs.run.launch import run
from jobs.run.provenance import provenance
from pipeline.core.arrow import empty_table
from pipeline.core.calls import Call
from pipeline.files.checksums import PARQUET_KEY
from pipeline.files.parquet import opened_parquet, parquet_content
from pipeline.files.place import as_path, list_paths, write
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import raise_layout
from pipeline.store.shards.shard_content import SEARCHED
from pipeline.store.shards.shard_files import list_shard_files
from pipeline.store.shards.shard_index import ATTEMPT, SCHEMA, commit_next, newest_index

_IDS = ("step_id", "unit", "document_id", "question_id", "input_sha")
_SHARDS_OF_A_FILE, _SHARDS_OF_A_GROUP = 4_000, 500


def write_copies(config: RunConfig, folder: UPath) -> int:
    """Write the run's warehouse as it is once all is done and compacted. The first document is read
    for it, into the warehouse `folder`. Returns the number of units."""
    patterns, warehouse = _of_one_document(config, folder), as_path(config.warehouse)
    made = prepare(resolve(config), warehouse, lambda line: None, DryRunShards(warehouse))
    of_run = RunFolder(warehouse, made.run.name)
    raise_layout(warehouse)
    of_run.start(run_manifest(made.run), provenance(None), has_work=True)
    of_run.plan(made.run.steps, made.plan.folder)
    entries = [empty_table(SCHEMA)]
    for file in list_paths(made.plan.folder, "*.parquet"):
        planned = pq.read_table(str(file), columns=[*_IDS])
        for step, own in zip(made.run.steps, patterns, strict=True):
            rows = planned.filter(pc.equal(planned["step_id"], step.id))
            for table, pattern in own.items():
                entries += _copied(warehouse / "compacted" / table, rows, pattern)
    compacted = warehouse / "compacted"
    commit_next(compacted, newest_index(compacted), pa.concat_tables(entries))
    return made.plan.num_units


def _of_one_document(config: RunConfig, folder: UPath) -> list[dict[str, Any]]:
    """For each step, by table, the rows of its first unit: those of one question if it has any."""
    inline = read_run(["corpus=synthetic", "cluster=inline"]).config.cluster
    changes = {"limit": 1, "warehouse": str(folder), "cluster": inline}
    one = resolve(config.model_copy(update=changes))
    run(one, lambda line: None)
    return [
        {
            table: _first(opened_parquet(str(folder / "tables" / table / step / names[0])))
            for (table, step), names in list_shard_files(folder).items()
            if step == own.id and names
        }
        for own in one.steps
    ]


def _first(shard: Any) -> Any:
    rows = shard.read()
    if "question_id" not in rows.column_names or not rows.num_rows:
        return rows
    first = rows["question_id"][0]
    return rows if not first.is_valid else rows.filter(pc.equal(rows["question_id"], first))


def _copied(folder: UPath, planned: Any, pattern: Any) -> Iterator[Any]:
    """Write a step's rows in one table, for its planned inputs; yields the entries of the index."""
    ends = np.asarray(pc.run_end_encode(planned["unit"].combine_chunks()).run_ends)
    bounds = np.concatenate(([0], ends))  # of the units among the inputs
    for first in range(0, len(ends), _SHARDS_OF_A_FILE):
        last, file = min(first + _SHARDS_OF_A_FILE, len(ends)), f"{uuid.uuid4().hex}.parquet"
        groups = list[Any]()
        for start in range(first, last, _SHARDS_OF_A_GROUP):
            own = bounds[start : min(start + _SHARDS_OF_A_GROUP, last) + 1]
            inputs = planned.slice(own[0], own[-1] - own[0]).combine_chunks()
            place = {"table_name": folder.name, "file": file, "row_group": len(groups)}
            yield _entries(inputs, own - own[0], pattern, place)
            groups.append(_rows(inputs, own - own[0], pattern, folder.name == Call.table))
        content = parquet_content(groups[0].schema, groups, write_statistics=SEARCHED)
        write(folder / file, content)


def _rows(inputs: Any, bounds: Any, pattern: Any, are_calls: bool) -> Any:
    num, each = inputs.num_rows, pattern.num_rows
    rows = pattern.take(np.tile(np.arange(each), num)).replace_schema_metadata(None)
    ids = inputs.take(np.repeat(np.arange(num), each))
    own = {name: ids[name] for name in _IDS if name in rows.column_names}
    if are_calls:
        firsts = np.repeat(bounds[:-1], np.diff(bounds)).repeat(each) * each
        own["call_index"] = pa.array(np.arange(num * each) - firsts)
    columns = [own.get(name, rows[name]) for name in rows.column_names]
    made = pa.Table.from_arrays(columns, schema=rows.schema)
    return made.append_column(ATTEMPT, pa.array(np.ones(num * each, np.int32)))


def _entries(inputs: Any, bounds: Any, pattern: Any, place: dict[str, Any]) -> Any:
    num, sizes = len(bounds) - 1, np.diff(bounds) * pattern.num_rows
    units = inputs.select(["step_id", "unit"]).take(bounds[:-1])
    facts = pattern.schema.metadata.items()
    footer = {key.decode(): value.decode() for key, value in facts if key != PARQUET_KEY.encode()}
    shas = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), inputs["input_sha"].chunk(0))
    is_asked = "input_sha" in pattern.column_names and place["table_name"] != Call.table
    own = {
        **place, "attempt": 1, "superseded": False, "footer": [*footer.items()],
        "step_id": units["step_id"], "unit": units["unit"], "num_rows": pa.array(sizes),
        "first_row": pa.array(bounds[:-1] * pattern.num_rows),
        "num_bytes": pa.array(sizes * (pattern.nbytes // max(pattern.num_rows, 1))),
        "input_shas": shas if is_asked else None,
    }  # fmt: skip
    columns = [
        own[field.name].cast(field.type) if hasattr(own[field.name], "cast")
        else pa.repeat(pa.scalar(own[field.name], field.type), num)
        for field in SCHEMA
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=SCHEMA)

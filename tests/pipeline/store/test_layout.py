"""Which layout a warehouse has; warehouses that were moved, copied or linked; other schemas."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from pipeline.store import Shards, connect
from pipeline.store.shards.layout import LAYOUT, check_layout
from pipeline.store.sql.connection import query
from stages.tables.answers import Answer
from tests.support.command import gistmill, one_line, succeed
from tests.support.runs.finished_run import FinishedRun

VERBS = (["report"], ["sql", "from answers"], ["ls"], ["rate", "run=night", "rater=extractive"])


def test_a_later_layout_is_refused_by_every_verb(made: FinishedRun, tmp_path: Path) -> None:
    assert check_layout(UPath(made.warehouse)) == LAYOUT
    assert check_layout(UPath(tmp_path)) == 1  # of those that state none
    warehouse = made.copied(tmp_path)
    (warehouse / "gistmill.json").write_text('{"layout": 9, "what": "is new"}')
    before = sorted(warehouse.rglob("*"))
    words = made.words(warehouse)
    for verb in (*VERBS, words, ["plan", *words[1:]]):
        line = one_line(gistmill(*verb, f"warehouse={warehouse}"))
        assert line == (
            f"{warehouse}: made by a later gistmill (layout 9, this one knows {LAYOUT}); "
            "update, or name another warehouse"
        )
    assert sorted(warehouse.rglob("*")) == before


@pytest.mark.slow
def test_a_warehouse_elsewhere_goes_on(made: FinishedRun, tmp_path: Path) -> None:
    """Nothing of it is asked again, and what reads it sees the same; by a link, too."""
    elsewhere = made.copied(tmp_path).rename(tmp_path / "my [copy] of it's * 100%")
    (there := tmp_path / "link").symlink_to(elsewhere)
    for verb in (["report"], ["sql", "from answers order by question_id"]):
        shown = succeed(*verb, f"warehouse={there}")
        assert shown == succeed(*verb, f"warehouse={made.warehouse}")
    outcome = json.loads(succeed(*made.words(there), "--json"))
    assert sum(outcome["calls"].values()) == 0
    assert outcome["exit_code"] == 0
    stored = (path for path in there.rglob("*") if path.is_file() and path.name != "config.yaml")
    assert not [path for path in stored if str(made.warehouse).encode() in path.read_bytes()]


def test_columns_of_earlier_and_later_versions(made: FinishedRun, tmp_path: Path) -> None:
    """A column, or a field of a struct, that the record gained is null in older shards, and its
    default for a stage that reads them; a column that it lost is not shown. Older calls say neither
    when they were sent nor by which worker."""
    warehouse = made.copied(tmp_path)
    answers, lookups, calls = (warehouse / made.shard(table).relative_to(made.warehouse)
                               for table in ("answers", "lookups", "calls"))  # fmt: skip
    pq.write_table(pq.read_table(calls).drop_columns(["started_at", "worker"]), calls)
    rows = pq.read_table(answers).drop_columns(["num_lookups", "detail"])
    pq.write_table(rows.append_column("mood", pa.array(["calm"] * rows.num_rows)), answers)
    rows = pq.read_table(lookups)
    kind = pa.list_(pa.struct([("page_index", pa.int64())]))
    dropped = pa.array([[{"page_index": 7}]] * rows.num_rows, kind)
    rows = rows.set_column(rows.column_names.index("dropped"), "dropped", dropped)
    pq.write_table(rows, lookups)
    with connect(warehouse) as connection:
        statement = "select question_id, num_lookups from answers order by 1"
        rows = connection.execute(statement).fetchall()
        assert rows == [("q1", None), ("q2", None), ("q3", 1)]
        columns = query(connection, "describe answers")
        assert "mood" not in [row["column_name"] for row in columns]
        rows = query(connection, "select dropped from lookups where question_id = 'q1'")
        assert rows == [{"dropped": [{"page_index": 7, "reason": None}]}]
        assert query(connection, "from left_out") == []
    unit, step_id = answers.name.split(".")[0], answers.parent.name
    loaded = Shards(warehouse).load(Answer, step_id, unit)
    recorded = Shards(warehouse).recorded(calls.parent.name, calls.name.split(".")[0]) or ()
    assert [(call.started_at, call.worker) for call in recorded] == [(None, None)] * 3
    assert [(row.question_id, row.num_lookups) for row in loaded] == [("q1", 0), ("q2", 0)]

"""The DuckDB views: which rows they show, and that readers never see half a file."""

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.rows import RECORDS, VIEWS, schema
from pipeline.store import connect
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import query
from pipeline.store.upkeep import compact
from stages.tables.answers import Answer
from tests.support.runs.warehouse import Warehouse, answer, chunk, document_unit, score, step

GISTS, ANSWERS, SCORES = step("gists"), step("answers", "full_text"), step("scores", "full_text")


def rows(warehouse: Warehouse, statement: str, run: str | None = None) -> list[dict[str, Any]]:
    with connect(warehouse.folder, run) as connection:
        return query(connection, statement)


def values(warehouse: Warehouse, statement: str, run: str | None = None) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows(warehouse, statement, run)]


def ids(warehouse: Warehouse, run: str | None = None) -> list[str]:
    """The questions that a run shows answers to."""
    return sorted(row["question_id"] for row in rows(warehouse, "from answers", run))


def commit_answers(warehouse: Warehouse, *question_ids: str, reader: str = "hand") -> Any:
    unit = chunk(ANSWERS, "d1", *question_ids)
    warehouse.commit(ANSWERS, unit, [answer(q, reader=reader) for q in question_ids])
    return unit


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A connection to a warehouse with a run that planned nothing."""
    warehouse = Warehouse(tmp_path_factory.mktemp("empty"))
    warehouse.plan("r")
    with connect(warehouse.folder) as connection:
        yield connection


def test_a_table_without_files_is_empty_and_typed(empty: Any) -> None:
    """Every view of all runs names the run."""
    types: dict[str, dict[str, str]] = {}
    for name, column, kind in empty.execute(
        """select table_name, column_name, data_type from duckdb_columns() where not internal
        order by column_index"""
    ).fetchall():
        types.setdefault(name, {})[column] = kind
    for prefix, table in product(("", "all_"), RECORDS):
        assert query(empty, f"from {prefix}{table}") == []
        of_table = types[f"{prefix}{table}"]
        assert of_table["document_id"] == of_table["step_id"] == "VARCHAR"
        assert list(of_table) == ["run"] * bool(prefix) + schema(RECORDS[table]).names
    assert [name for name in types if name.startswith("all_") and "run" not in types[name]] == []


@pytest.mark.slow
def test_every_view_is_made_alone_in_an_empty_warehouse(empty: Any, tmp_path: Path) -> None:
    Warehouse(tmp_path).plan("r")
    for view in (row["name"] for row in query(empty, "show tables")):
        with connect(tmp_path) as connection:
            rows = query(connection, f"from {view}")
            assert len(rows) == (view == "call_bytes"), view


def test_no_table_may_be_named_like_a_view(empty: Any) -> None:
    shown = query(empty, "show tables")
    brought = " ".join(sql for record in RECORDS.values() for sql in record.sql().values())
    names = {row["name"] for row in shown if not re.match(r"(all|raw|no)_|\w+_rows$", row["name"])}
    names -= {*RECORDS, *re.findall(r"view {prefix}(\w+)", brought)}
    assert names == set(VIEWS)


def test_units_say_when_they_began_and_who_made_them(warehouse: Warehouse) -> None:
    made, left = chunk(ANSWERS, "d1", "q1"), chunk(ANSWERS, "d1", "q2")
    began = datetime(2026, 11, 22, 3, 14, 15)
    warehouse.shards.commit(Answer, ANSWERS, made, [answer("q1")], began)
    warehouse.plan("r", (ANSWERS, [made, left]))
    for _ in ("loose", "compacted"):
        units = values(warehouse, "select question_id, started_at, worker from units order by 1")
        assert units == [
            ("q1", began, f"{socket.gethostname()}-{os.getpid()}"), ("q2", None, None),
        ]  # fmt: skip
        compact(warehouse.folder, least=1)


def test_the_latest_run_is_shown_by_default(warehouse: Warehouse) -> None:
    for run, question_id in (("b", "q0"), ("a", "q1")):
        warehouse.plan(run, (ANSWERS, [commit_answers(warehouse, question_id)]))
        assert (run_name(warehouse.folder, None), ids(warehouse)) == (run, [question_id])
    warehouse.plan("b", (ANSWERS, [chunk(ANSWERS, "d1", "q0")]))
    assert ids(warehouse) == ["q0"]


@pytest.mark.slow
def test_runs_show_their_own_rows_units_shards_and_steps(warehouse: Warehouse) -> None:
    """q2 is in units of two runs; q4 and the scores, which one planned once, are of none now."""
    first = commit_answers(warehouse, "q1", "q2", reader="first")
    second = commit_answers(warehouse, "q2", "q3", reader="second")
    commit_answers(warehouse, "q4", reader="gone")
    warehouse.commit(GISTS, read := document_unit(GISTS, "d1"), [])
    warehouse.plan("two", (SCORES, [chunk(SCORES, "d1", "q1")]))
    warehouse.plan("one", (ANSWERS, [first]))
    warehouse.plan("two", (ANSWERS, [second]), (GISTS, [read]))
    answers_of = {"one": [("q1", "first"), ("q2", "first")],
                  "two": [("q2", "second"), ("q3", "second")]}  # fmt: skip
    steps_of = {"one": [ANSWERS.id], "two": sorted([ANSWERS.id, GISTS.id])}
    for run, answers in answers_of.items():
        assert {row["run"] for row in rows(warehouse, "from units", run)} == {run}
        shown = values(warehouse, "select question_id, reader from answers order by 1", run)
        assert shown == answers
        for view in ("steps", "shards"):
            steps = values(warehouse, f"select step_id from {view} order by 1", run)
            assert steps == [(step_id,) for step_id in steps_of[run]]
    all_answers = values(warehouse, "select run, question_id, reader from all_answers order by all")
    of_runs = [(run, *answer) for run, answers in answers_of.items() for answer in answers]
    assert all_answers == [*of_runs, (None, "q4", "gone")]
    assert {row["run"] for row in rows(warehouse, "from all_units")} == {"one", "two"}
    assert values(warehouse, "select step_id, run from all_steps order by all") == [
        (ANSWERS.id, "one"), (ANSWERS.id, "two"), (GISTS.id, "two"), (SCORES.id, None),
    ]  # fmt: skip


def test_overlapping_runs_keep_every_row_of_the_unit_that_counts(warehouse: Warehouse) -> None:
    """Several rows a question: all of one unit, none of the other, whether a run planned it (q1)
    or none has (q2)."""
    units = [chunk(SCORES, "d1", *ids) for ids in (("q1",), ("q1", "q2"), ("q2",))]
    for value, unit in enumerate(units):
        made = [score(q, metric, float(value)) for q in unit.inputs for metric in ("f1", "em")]
        warehouse.commit(SCORES, unit, made)
    warehouse.plan("r", (SCORES, units[:1]))
    scores = values(warehouse, "select question_id, metric, value from all_scores order by all")
    lower = float(units.index(min(units[1:], key=lambda unit: unit.unit)))
    assert scores == [
        ("q1", "em", 0.0), ("q1", "f1", 0.0), ("q2", "em", lower), ("q2", "f1", lower),
    ]  # fmt: skip


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("most_bytes", [0, 16_000_000])
def test_a_run_shows_only_what_it_planned(
    warehouse: Warehouse, is_compacted: bool, most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a step that it planned whole, without some units, without a question of a unit (one that
    was taken out of the corpus); and of a whole one with a unit that is not compacted yet. What is
    read whole into memory has the same rows."""
    monkeypatch.setattr("pipeline.store.sql.connect._MOST_BYTES", most_bytes)
    units = [commit_answers(warehouse, "q1", "q2"), commit_answers(warehouse, "q3")]
    if is_compacted:
        compact(warehouse.folder, least=1)
    of_unit = replace(units[0], inputs={"q1": units[0].inputs["q1"]})
    for run, planned in (("all", units), ("some", units[:1]), ("part", [of_unit, units[1]])):
        warehouse.plan(run, (ANSWERS, planned))
    assert ids(warehouse, "some") == ["q1", "q2"]
    assert ids(warehouse, "part") == ["q1", "q3"]
    later = commit_answers(warehouse, "q4")
    assert ids(warehouse, "all") == ["q1", "q2", "q3"]
    warehouse.plan("all", (ANSWERS, [*units, later]))
    assert ids(warehouse, "all") == ["q1", "q2", "q3", "q4"]


def test_methods_are_paired_question_by_question(warehouse: Warehouse) -> None:
    scores = {
        "bm25": [score("q1", "f1", 40.0), score("q2", "f1", 10.0)],
        "full_text": [score("q1", "f1", 100.0), score("q2", "f1", None)],
        "gist_only": [score("q1", "em", 0.0)],
    }
    planned = []
    for method, of_method in scores.items():
        unit = chunk(of := step("scores", method), "d1", "q1", "q2")
        warehouse.commit(of, unit, of_method)
        planned.append((of, [unit]))
    warehouse.plan("r", *planned)
    columns = "select method, other, question_id, metric, value, other_value, difference"
    paired = values(warehouse, f"{columns} from paired order by all")
    assert paired == [
        ("bm25", "full_text", "q1", "f1", 40.0, 100.0, -60.0),
        ("full_text", "bm25", "q1", "f1", 100.0, 40.0, 60.0),
    ]
    assert values(warehouse, f"{columns} from all_paired where run = 'r' order by all") == paired

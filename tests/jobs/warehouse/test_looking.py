"""`gistmill ls`, `schema`, as the page docs/schema.md has it, and `status`."""

import json
import re
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobs.warehouse.listing import named, read_schema
from pipeline.core.errors import ClusterError
from pipeline.core.rows import RECORDS
from pipeline.files.lease import RUN, lease
from pipeline.files.storage import as_path
from tests.support.command import ROOT, gistmill, own_process, refused, succeed, succeeded
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.hand_run import HandRun

PLUGIN = ROOT / "tests" / "support" / "quote_plugin"
OF_CODE = {
    "columns", "engines", "extractors", "formats", "metrics", "prompts", "rubrics", "stages",
}  # fmt: skip


@pytest.mark.slow
def test_the_committed_page_is_the_generated_one() -> None:
    """In a process of its own: plugins that other tests load stay for good."""
    printed = succeeded(own_process("schema", "--markdown"))
    page = ROOT / "docs" / "schema.md"
    assert page.read_text() == printed, "run gistmill schema --markdown > docs/schema.md"


def test_every_table_column_and_problem_has_a_meaning() -> None:
    """A comment beside the record's field, or a line of a view's SQL."""
    schema = read_schema()
    folders = ("pipeline.", "stages.")
    ours = {name for name, record in RECORDS.items() if record.__module__.startswith(folders)}
    tables = [table for table in schema["tables"] if table["is_view"] or table["name"] in ours]
    assert len(tables) > 30
    assert [table["name"] for table in tables if not table["about"]] == []
    columns = [(table["name"], column) for table in tables for column in table["columns"]]
    assert [(name, column["name"]) for name, column in columns if not column["meaning"]] == []
    assert all(schema["problems"].values()) and "unparseable" in schema["problems"]


@pytest.mark.slow
def test_all_that_has_a_name_is_described() -> None:
    table, column = json.loads(succeed("schema", "lookups", "--json"))
    assert (column["name"], column["is"]) == ("lookups", "column")
    assert (table["name"], table["key"]) == ("lookups", ["question_id", "turn"])
    (used,) = [column for column in table["columns"] if column["name"] == "used"]
    assert (used["type"], used["nullable"]) == ("BIGINT[]", True)
    assert used["meaning"] == "page indexes in order of importance; null: no reply"
    shown = succeed("schema", "all_paired")
    assert shown.startswith("paired, a view: ") and "| difference  | DOUBLE  |" in shown
    page, gist, *others = json.loads(succeed("schema", "gist", "--json"))
    assert (page["is"], gist["is"]) == ("prompt", "stage")
    kinds = ("conditional", "fitted", "follow_up", "given")
    assert {row["name"] for row in others} == {f"gist (kind {kind})" for kind in kinds}
    assert "| top_k   |" in succeed("schema", "look_up (kind bm25)")


@pytest.mark.slow
def test_tables_of_plugins() -> None:
    both = succeeded(own_process("schema", "quotes", "quoted", f"plugins={PLUGIN}"))
    assert both.startswith("quotes, a table: ")
    assert "quoted, a view: A row per quote that a page gave." in both
    assert "| num_chars   | BIGINT  | of the quote" in both
    assert own_process("schema", "quotes").returncode == 2


def test_each_has_a_line_and_a_description() -> None:
    schema, listed = read_schema(), json.loads(succeed("ls", "--json"))
    assert {*listed} > OF_CODE | {"methods", "families", "corpus", "experiment"}
    for kind in OF_CODE:
        assert listed[kind] and all(row["about"] and row["module"] for row in listed[kind])
        assert named(schema, listed[kind][0]["name"])


def state(warehouse: Path) -> str:
    (run,) = json.loads(succeed("ls", f"warehouse={warehouse}", "--json"))["runs"]
    return str(run["state"])


@pytest.mark.slow
def test_ls_says_how_runs_stand(tmp_path: Path, hand: HandRun) -> None:
    night = FinishedRun(tmp_path)
    listed = json.loads(succeed("ls", f"warehouse={night.warehouse}", "--json"))
    assert [*listed] == ["runs", "left_out"]
    (run,) = listed["runs"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00", run.pop("started_at"))
    assert run == {
        "run": "night", "corpus": "tables", "engine": "scripted", "state": "complete",
        "documents": 2, "questions": 3, "methods": 1, "steps": 8,
    }  # fmt: skip
    with lease(as_path(night.warehouse) / "runs" / "night", RUN):
        assert state(night.warehouse) == "running"
    night.shard("gists").unlink()
    assert state(night.warehouse) == "incomplete"
    assert state(hand.warehouse) == "problems"


@pytest.mark.slow
def test_status_has_a_row_per_stage_and_shows_what_is_over_once(night: FinishedRun) -> None:
    words = ("status", f"warehouse={night.warehouse}")
    stages = succeed(*words)
    rows = json.loads(succeed(*words, "--json"))["steps"]
    assert stages.startswith("run night: complete\n")
    num_stages = len({row["stage"] for row in rows})
    assert sum(line.startswith("| ") for line in stages.splitlines()) == 1 + num_stages
    (gists,) = [line.split() for line in stages.splitlines() if line.startswith("| gist ")]
    assert gists[3:8:2] == ["1", "2", "2"], "a step of two documents, both ok"
    assert succeed(*words, "--watch") == stages
    for watched in ("--watch", "every=0.5"):
        assert json.loads(succeed(*words, watched, "--json"))["complete"]


@pytest.mark.slow
def test_why_ray_did_not_start_stays_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the run is complete, in `status` and above the report."""
    why = "Ray did not start on this machine in 3 attempts (no port)"
    words = ["corpus=synthetic", "corpus.num_documents=1", "corpus.words=300", "memory=uniform",
             "methods=gist_only", "rater=none", "run=night", f"warehouse={tmp_path}"]  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.cluster.join", Mock(side_effect=ClusterError(why)))
        assert gistmill("run", *words, "cluster=local").returncode == 4
    assert f"the last launch ended early: {why}" in succeed("status", words[-1])
    assert f"It ended early: {why}" in succeed("report", words[-1])
    succeed("run", *words)
    assert "ended early" not in succeed("status", words[-1]) + succeed("report", words[-1])


@pytest.mark.slow
def test_a_log_gets_a_block_each_time_until_the_run_ends(
    night: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or until Ctrl-C, which does not end the run."""
    pauses, leases = list[float](), ExitStack()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            raise KeyboardInterrupt
        if len(pauses) == 3:
            leases.close()

    monkeypatch.setattr("jobs.warehouse.status.time", Mock(sleep=pause))
    words = ("status", "--watch", "every=7", f"warehouse={night.warehouse}")
    with leases:
        assert leases.enter_context(lease(as_path(night.warehouse / "runs" / "night"), RUN))
        assert succeed(*words).count("executed on") == 1
        blocks = re.split(r"\n\n(?=run night)", succeed(*words))
    assert pauses == [7.0, 7.0, 7.0]
    assert ["executed on" in block for block in blocks] == [True, True, False]


def test_an_interval_that_is_none_is_refused(night: FinishedRun) -> None:
    for every in ("0", "nan", "soon", "1e9"):
        assert "every=" in refused("status", f"every={every}", f"warehouse={night.warehouse}")

"""What a run tells its tracker: one of a plugin, and the real packages in their offline modes."""

import json
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.read_run import read_config
from pipeline.core.settings import CONF
from tests.support.command import ROOT, gistmill, own_process, refused, succeeded
from tests.support.texts.small_corpus import UNIFORM, document, question, write

# Two documents of three pages: six gists; a question each, which two methods answer.
NUM_CALLS = 6 + 4
PLUGIN = ROOT / "tests" / "support" / "brought_plugin"


def words(folder: Path, *more: str) -> list[str]:
    asked = [question(number, of=number) for number in (1, 2)]
    write(folder / "corpus", [document(number) for number in (1, 2)], asked)
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only,closed_book", f"warehouse={folder / 'warehouse'}", "run=night",
        "cluster=inline", *more,
    ]  # fmt: skip


def with_plugin(folder: Path) -> list[str]:
    return words(folder, f"plugins={PLUGIN}", "tracker=lines", f"tracker.file={folder / 'told'}")


def told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "told").read_text().splitlines()]


def test_a_tracker_of_a_plugin_is_told_config_progress_and_table(tmp_path: Path) -> None:
    succeeded(own_process(*with_plugin(tmp_path)))
    first, *between, last = told(tmp_path)
    assert (first["what"], first["run"]) == ("start", "night")
    assert (first["config"]["limit"], first["config"]["engine"]["name"]) == (None, "extractive")
    assert {one["what"] for one in between} == {"progress"}
    assert between[-1]["units"] <= between[-1]["planned_units"]
    assert (last["what"], last["exit_code"]) == ("end", 0)
    assert [row["method"] for row in last["headline"]] == ["gist_only", "closed_book"]
    assert {row["answered"] for row in last["headline"]} == {"2/2"}


@pytest.mark.slow
def test_the_same_command_is_the_same_run_there(tmp_path: Path) -> None:
    for _ in range(2):
        succeeded(own_process(*with_plugin(tmp_path)))
    ids = [one["run_id"] for one in told(tmp_path) if one["what"] == "start"]
    assert len(ids) == 2 and ids[0] == ids[1]


@pytest.mark.parametrize("fails_at", ["start", "progress", "end"])
def test_a_tracker_that_fails_is_one_warning_and_no_end_of_the_run(
    tmp_path: Path, fails_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES_FAIL_AT", fails_at)
    done = own_process(*with_plugin(tmp_path))
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "tracker" in line]
    assert line.startswith("tracker=lines: AwayError: its server is away (")
    assert re.search(r"lines_tracker\.py:\d+\); the run goes on without it$", line)
    assert "gist_only" in done.stdout


def test_a_run_that_fails_is_told_as_failed(tmp_path: Path) -> None:
    command = [*with_plugin(tmp_path), "engine=openai", "engine.base_url=http://127.0.0.1:9/v1",
               "engine.model=m", "engine.retries=0"]  # fmt: skip
    assert own_process(*command).returncode == 1
    assert (told(tmp_path)[-1]["what"], told(tmp_path)[-1]["exit_code"]) == ("end", 1)


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_package_that_is_missing_is_one_line_before_the_run(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.trackers.tracker.find_spec", lambda package: None)
    line = refused(*words(tmp_path, f"tracker={name}"))
    assert line == f"tracker={name}: {name} is not installed; pip install 'gistmill[{name}]'"
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("tracker=tensorboard",),
         "tracker=tensorboard: no such choice; tracker is one of mlflow, none, wandb"),
        (("tracker=null",), "tracker=null: no such choice; tracker is one of mlflow, none, wandb"),
        (("tracker.project=mine",), "tracker.project: no such key; "),
        (("tracker=wandb", "tracker.projct=a"),
         "tracker.projct: no such key; nearest: tracker.project"),
        (("tracker=wandb", "tracker.project="), "tracker.project= is empty"),
        (("tracker=wandb", "tracker.entity=7"), "tracker.entity=7: Input should be a valid string"),
        (("tracker=mlflow", "tracker.uri=http://me:pw-secret@h"),
         "tracker.uri: set no secret here"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(tmp_path: Path, given: tuple[str, ...], complaint: str) -> None:
    line = refused(*words(tmp_path, *given))
    assert line.startswith(complaint)
    assert "pw-secret" not in line


def test_a_run_is_the_same_whoever_tracks_it(tmp_path: Path) -> None:
    plain = read_config(words(tmp_path)[1:])
    assert plain.tracker.name == "none"
    assert {file.stem for file in (CONF / "tracker").glob("*.yaml")} == {"none", "wandb", "mlflow"}


@pytest.mark.interchange
def test_wandb_keeps_a_run_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read back from the file that `wandb sync` sends."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    done = own_process(*words(tmp_path, "tracker=wandb", "tracker.project=books"))
    assert done.returncode == 0 and "tracker" not in done.stderr, done.stderr
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    kept = records(file)
    (run,) = [record.run for record in kept if record.HasField("run")]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert (run.project, run.display_name) == ("books", "night")
    assert (config["run"], config["engine"]["name"]) == ("night", "extractive")
    rows = [{item.key or item.nested_key[0]: item.value_json for item in record.history.item}
            for record in kept if record.HasField("history")]  # fmt: skip
    assert any("units" in row for row in rows)
    assert [row for row in rows if "headline" in row or "headline._type" in row]
    (table,) = tmp_path.glob("wandb/offline-run-*/files/media/table/headline*.json")
    content = json.loads(table.read_text())
    assert content["columns"][:2] == ["method", "answered"]
    assert [row[:2] for row in content["data"]] == [["gist_only", "2/2"], ["closed_book", "2/2"]]
    assert b"sk-secret" not in file.read_bytes()


_BLOCK, _HEAD = 32768, 7


def records(file: Path) -> list[Any]:
    """The records of a .wandb file, which is a LevelDB log: blocks of pieces, each behind its
    checksum (4 bytes), length (2) and kind (1: whole, 2: first, 3: middle, 4: last)."""
    from wandb.proto import wandb_internal_pb2

    content, place, piece, found = file.read_bytes(), _HEAD, b"", []
    while place + _HEAD <= len(content):
        if _BLOCK - place % _BLOCK < _HEAD:
            place += _BLOCK - place % _BLOCK
        _, size, kind = struct.unpack("<IHB", content[place : place + _HEAD])
        piece += content[place + _HEAD : place + _HEAD + size]
        place += _HEAD + size
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(piece)
            found.append(record)
            piece = b""
    return found


@pytest.fixture
def file_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder for MLflow's runs."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return f"file://{tmp_path / 'mlruns'}"


@pytest.mark.interchange
def test_mlflow_keeps_a_run_and_goes_on_with_it(tmp_path: Path, file_store: str) -> None:
    from mlflow import MlflowClient

    command = words(tmp_path, "tracker=mlflow", f"tracker.uri={file_store}",
                    "tracker.experiment=books")  # fmt: skip
    for _ in range(2):  # the second one makes nothing, and is the same run
        done = gistmill(*command)
        assert done.returncode == 0 and "tracker" not in done.stderr, done.stderr
    client = MlflowClient(file_store)
    experiment = client.get_experiment_by_name("books")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("night", "FINISHED")
    assert (run.data.params["engine.name"], run.data.params["run"]) == ("extractive", "night")
    assert run.data.metrics["planned_units"] >= run.data.metrics["units"]
    content = artifact(client, run.info.run_id, "headline.json")
    assert content["columns"][:2] == ["method", "answered"]
    assert [row[:2] for row in content["data"]] == [["gist_only", "2/2"], ["closed_book", "2/2"]]
    assert artifact(client, run.info.run_id, "config.json")["methods"] == "gist_only,closed_book"


def artifact(client: Any, run_id: str, name: str) -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(Path(client.download_artifacts(run_id, name)).read_text())
    return content


@pytest.mark.interchange
def test_a_server_that_is_away_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("WANDB_API_KEY", "")
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "WANDB_BASE_URL" not in os.environ
    for given in (("tracker=mlflow", "tracker.uri=http://127.0.0.1:9"), ("tracker=wandb",)):
        done = own_process(*words(tmp_path, *given))
        assert done.returncode == 0, done.stderr
        (line,) = [line for line in done.stderr.splitlines() if "tracker" in line]
        assert line.startswith(f"{given[0]}: ")
        assert line.endswith("; the run goes on without it")

"""What `--help`, `--version` and shell completion say; the hints in errors of SQL."""

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from jobs.cli.app import app
from jobs.config.run_config import RunConfig
from tests.support.command import gistmill, succeed
from tests.support.runs.finished_run import FinishedRun
from tests.support.runs.warehouse import Warehouse


def test_the_version() -> None:
    assert succeed("--version") == f"gistmill {importlib.metadata.version('gistmill')}\n"


def verbs_of(group: Any, *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every verb of the command with its words, and the groups of verbs."""
    for name, verb in group.commands.items():
        yield (*above, name), verb
        if hasattr(verb, "commands"):
            yield from verbs_of(verb, *above, name)


VERBS = dict(verbs_of(typer.main.get_command(app)))


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_the_help_of_a_verb_has_an_example_and_all_options(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = succeed(*words, "--help")
    assert max(map(len, text.splitlines())) <= 80
    if not hasattr(VERBS[words], "commands"):
        example = re.search(r"Example:\n    gistmill (.+)", text)
        assert example and example[1].split()[: len(words)] == [*words]
    assert all(param.opts[0] in text for param in VERBS[words].params if param.opts[0][:1] == "-")


def test_run_help_names_every_key() -> None:
    text = succeed("run", "--help")
    words = set(re.findall(r"(\w+)(?:\.\w+)?=", text))
    keys = {*RunConfig.model_fields, "experiment", "rater"}
    assert keys - words == {"name", "raters", "predictions", "audit_of"}


def completions(folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> list[str]:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("_GISTMILL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    return gistmill().stdout.split()


def test_completion_knows_verbs_keys_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ("night", "nap"):
        Warehouse(tmp_path / "warehouse").plan(run)
    assert completions(tmp_path, monkeypatch, "gistmill rep") == ["report"]
    assert "repeat_from=" in completions(tmp_path, monkeypatch, "gistmill run rep")
    assert completions(tmp_path, monkeypatch, "gistmill report run=") == ["run=nap", "run=night"]
    assert completions(tmp_path, monkeypatch, "gistmill report run=ni") == ["run=night"]


@pytest.mark.parametrize(
    ("verb", "keys"),
    [
        ("trace q", {"warehouse", "run", "method", "plugins"}),
        ("rate sheet", {"warehouse", "run", "method", "where", "n", "seed", "to"}),
        ("retry", {"warehouse", "run", "problem", "cluster"}),
        ("ask book.txt", {"method", "engine", "memory"}),
    ],
)
def test_completion_knows_the_keys_of_each_verb(
    verb: str, keys: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = completions(tmp_path, monkeypatch, f"gistmill {verb} ")
    assert keys <= {word.removesuffix("=") for word in words}


def test_hints_show_the_user_s_expression_and_no_statement_of_ours(tmp_path: Path) -> None:
    folder = f"warehouse={FinishedRun(tmp_path).warehouse}"
    for key in ("where", "by"):
        done = gistmill("report", folder, f"{key}=qestion_type = 'why'")
        first, shown, mark = done.stderr.splitlines()
        assert done.returncode == 2 and '"question_type"' in first
        assert (shown, mark) == ("  qestion_type = 'why'", "  ^^^^^^^^^^^^")
